package settings

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	uuid1 = "4c4c4544-0042-3510-8054-b7c04f4d3332"
	uuid2 = "4c4c4544-0042-3510-8054-b7c04f4d3333"
)

// TestATableThatCanBeMisreadIsRefused, with the machine and what is wrong.
func TestATableThatCanBeMisreadIsRefused(t *testing.T) {
	t.Parallel()
	for table, says := range map[string]string{
		"":                               "the table has no machines",
		"node,ip\n":                      "the table has no machines",
		"node,ip\na,1,2\n":               "wrong number of fields",
		"node,node\na,b\n":               `the column "node" exists twice; remove one`,
		"node,action\na,off\n":           `the column "action" is an option that only Drydock may set`,
		"node,debug-file\na,/x\n":        "is an option that only Drydock may set",
		"node,\na,b\n":                   "is not the name of an option",
		"node,password\na,b\n":           `the column "password" is also in secretFiles`,
		"node,ip\n,1\n":                  "machine 1 has neither node nor uuid; write one of them",
		"node,ip\na,1\na,2\n":            "machines 1 and 2 have the same node a",
		"node,ip\na,1\nb,1\n":            "machines 1 and 2 have the same options",
		"uuid,ip\nx,1\n":                 `"x" is not a UUID`,
		"uuid,ip\n" + uuid1[:8] + ",1\n": "is not a UUID",
		"uuid,ip\n00000000-0000-0000-0000-000000000000,1\n":                  "repeats one byte",
		"uuid,ip\n" + uuid1 + ",1\n" + strings.ToUpper(uuid1) + ",2\n":       "machines 1 and 2 have the same uuid",
		"uuid,ip\n" + uuid1 + ",1\n44454c4c-4200-1035-8054-b7c04f4d3332,2\n": "machines 1 and 2 have the same uuid", // the other order of bytes
		"node,plug\na,\"1\naction=off\"\n":                                   "the value of plug has a control character; remove it",
	} {
		_, err := readTable([]byte(table), &Agent{Options: map[string]string{"ip": "x"}, SecretFiles: map[string]string{"password": "/x"}})
		require.ErrorContains(t, err, says, table)
	}
}

// TestATableOfFiveHundredMachines is five hundred lines. An empty cell sets nothing, and a cell
// goes before the agent's own options.
func TestATableOfFiveHundredMachines(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	b.WriteString("# rack 7\nnode, uuid, ip, plug\n")
	for i := range 500 {
		fmt.Fprintf(&b, "node-%d,4c4c4544-0042-3510-8054-%012x,192.0.2.%d,%d\n", i, i, i%2, i)
	}
	b.WriteString("last,,,\"3,4\"\n")
	rows, err := readTable(b.Bytes(), &Agent{Options: map[string]string{"ip": "own", "username": "u"}})
	require.NoError(t, err)
	require.Len(t, rows, 501)
	require.Equal(t, map[string]string{"ip": "192.0.2.1", "username": "u", "plug": "499"}, rows[499].Options)
	require.Equal(t, map[string]string{"ip": "own", "username": "u", "plug": "3,4"}, rows[500].Options)
}

// FuzzTable: whatever a table has, each machine is named once, and no option of it can become a
// second line for the agent.
func FuzzTable(f *testing.F) {
	f.Add([]byte("node,uuid,ip,plug\nnode-1," + uuid1 + ",192.0.2.1,4\n"))
	f.Add([]byte("node,plug\na,\"1\naction=off\"\n"))
	f.Add([]byte("uuid\n" + uuid1 + "\n#\n\"" + uuid2 + "\"\n"))
	f.Fuzz(func(t *testing.T, table []byte) {
		rows, err := readTable(table, &Agent{})
		if err != nil {
			return
		}
		require.NotEmpty(t, rows)
		names := map[string]bool{}
		for _, one := range rows {
			id := one.Node + " " + one.UUID.Canonical().String()
			require.False(t, names[id])
			names[id] = true
			for name, value := range one.Options {
				require.Empty(t, forbids(name))
				require.False(t, strings.ContainsAny(value, "\n\r\x00"), "it would be two lines")
			}
		}
	})
}
