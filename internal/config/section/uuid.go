package section

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// UUID is a machine's UUID. The bytes are in the order of the text.
type UUID [16]byte

// ParseUUID parses a UUID in its usual format, five groups of hexadecimal digits.
func ParseUUID(s string) (UUID, error) {
	var u UUID
	groups := strings.Split(strings.TrimSpace(s), "-")
	if len(groups) == 5 && len(groups[0]) == 8 && len(groups[1]) == 4 && len(groups[2]) == 4 && len(groups[3]) == 4 && len(groups[4]) == 12 {
		if b, err := hex.DecodeString(strings.Join(groups, "")); err == nil {
			copy(u[:], b)
			return u, nil
		}
	}
	return u, fmt.Errorf("%.60q is not a UUID", s)
}

func (u UUID) String() string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

// swapped reverses the bytes of each of the first three groups. SMBIOS stores these groups
// little-endian, and some firmware gets the order wrong. So a BMC and Linux's product_uuid may show
// the same machine in different orders, and a firmware update may change the order.
func (u UUID) swapped() UUID {
	return UUID{u[3], u[2], u[1], u[0], u[5], u[4], u[7], u[6], u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]}
}

// Canonical returns the same value for both byte orders of a UUID, so that a map needs only one key
// for a machine.
func (u UUID) Canonical() UUID {
	if s := u.swapped(); string(s[:]) < string(u[:]) {
		return s
	}
	return u
}

// manyHave are UUIDs that all boards of a series have. Owners reported each of them in public.
var manyHave = []string{
	"03000200-0400-0500-0006-000700080009", // many boards with AMI's firmware
	"31393138-3538-5a43-3135-353130323750", // HPE ProLiant MicroServer Gen8
	"8a95d198-7f46-11e5-bf8b-08002704d48e", // SolidRun LX2160A
	"00000000-0000-0000-0807-060504030201",
	"00112233-4455-6677-8899-aabbccddeeff", // the example of the standard
}

// Shared returns why several machines may have this UUID, or "" if no reason is known.
func (u UUID) Shared() string {
	same := true
	for _, b := range u {
		same = same && b == u[0]
	}
	if same {
		return "repeats one byte, which is what firmware without a UUID shows"
	}
	for _, s := range manyHave {
		if known, err := ParseUUID(s); err == nil && known.Canonical() == u.Canonical() {
			return "is the same for a whole series of machines"
		}
	}
	return ""
}
