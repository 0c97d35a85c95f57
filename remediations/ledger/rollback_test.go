package ledger

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
)

// These types are the ledger as Drydock of 2026-11-27 (7c8b93d9) reads it, copied from that
// version. That version refuses an unknown field, and then holds all repairs. So these types must
// not change.
type (
	oldSlot struct {
		Kind         string    `json:"kind,omitempty"`
		Node         string    `json:"node"`
		Successor    string    `json:"successor,omitempty"`
		Location     string    `json:"location,omitempty"`
		Policy       string    `json:"policy"`
		UID          string    `json:"uid,omitempty"`
		ProviderID   string    `json:"providerID,omitempty"`
		Zone         string    `json:"zone,omitempty"`
		Pool         string    `json:"pool,omitempty"`
		Repair       string    `json:"repair"`
		Attempt      string    `json:"attempt"`
		Since        time.Time `json:"since"`
		Wide         bool      `json:"wide,omitempty"`
		ControlPlane bool      `json:"controlPlane,omitempty"`
	}
	oldBegun struct {
		Repair string    `json:"repair"`
		At     time.Time `json:"at"`
	}
	oldOrphan struct {
		Node       string    `json:"node"`
		UID        string    `json:"uid"`
		ProviderID string    `json:"providerID,omitempty"`
		Record     oldRecord `json:"record"`
	}
	oldSpan struct {
		From time.Time `json:"from"`
		To   time.Time `json:"to,omitzero"`
	}
	oldStep struct {
		Index   int    `json:"index"`
		Name    string `json:"name"`
		Attempt int    `json:"attempt"`
	}
	oldCure struct {
		Repair   string    `json:"repair"`
		Policy   string    `json:"policy"`
		At       time.Time `json:"at"`
		Step     oldStep   `json:"step"`
		Steps    []string  `json:"steps"`
		Trials   []string  `json:"trials,omitempty"`
		Relapsed bool      `json:"relapsed,omitempty"`
	}
	oldStatus struct {
		Mode       string                   `json:"mode,omitempty"`
		Limits     map[string]string        `json:"limits,omitempty"`
		BreakGlass map[string]oldBreakGlass `json:"breakGlass,omitempty"`
		Breakers   map[string]oldBreaker    `json:"breakers,omitempty"`
		Blind      string                   `json:"blind,omitempty"`
		Exhausted  map[string]int           `json:"exhausted,omitempty"`
		Ends       map[string][]oldEnd      `json:"ends,omitempty"`
		Stopped    map[string]string        `json:"stopped,omitempty"`
		Sidecars   map[string]string        `json:"sidecars,omitempty"`
		Holds      map[string]string        `json:"holds,omitempty"`
		SelfTest   oldSelfTest              `json:"selfTest,omitzero"`
		Uncovered  map[string]oldLack       `json:"uncovered,omitempty"`
		Contested  []string                 `json:"contested,omitempty"`
	}
	oldBreakGlass struct {
		Since time.Time `json:"since"`
		Why   string    `json:"why"`
	}
	oldBreaker struct {
		State     string    `json:"state"`
		Since     time.Time `json:"since"`
		Unhealthy int       `json:"unhealthy"`
		Nodes     int       `json:"nodes"`
		Quiet     time.Time `json:"quiet"`
		Trial     string    `json:"trial,omitempty"`
		Seen      time.Time `json:"seen,omitzero"`
		Frozen    bool      `json:"frozen,omitempty"`
	}
	oldEnd struct {
		Repair string `json:"repair,omitempty"`
		Failed bool   `json:"failed,omitempty"`
	}
	oldSelfTest struct {
		State   string    `json:"state,omitempty"`
		Message string    `json:"message,omitempty"`
		Since   time.Time `json:"since,omitzero"`
	}
	oldLack struct {
		Nodes int    `json:"nodes"`
		First string `json:"first"`
	}
	oldRecord struct {
		V      int    `json:"v"`
		ID     string `json:"id"`
		Policy string `json:"policy"`
		Cause  struct {
			Alert   string `json:"alert,omitempty"`
			Request string `json:"request,omitempty"`
		} `json:"cause"`
		Target string `json:"target,omitempty"`
		Pod    *struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
			UID       string `json:"uid,omitempty"`
		} `json:"pod,omitempty"`
		Location string `json:"location,omitempty"`
		Moves    []struct {
			Location string             `json:"location"`
			From     string             `json:"from"`
			To       string             `json:"to"`
			Before   map[string]*string `json:"before"`
			Refused  bool               `json:"refused,omitempty"`
		} `json:"moves,omitempty"`
		Back  *time.Time `json:"back,omitempty"`
		Also  []string   `json:"also,omitempty"`
		After *struct {
			ID    string   `json:"id"`
			Step  oldStep  `json:"step"`
			Steps []string `json:"steps"`
		} `json:"after,omitempty"`
		Phase    string    `json:"phase"`
		Step     oldStep   `json:"step"`
		Done     []string  `json:"done,omitempty"`
		Began    time.Time `json:"began"`
		Since    time.Time `json:"since"`
		Deadline time.Time `json:"deadline"`
		Intent   *struct {
			ID           string          `json:"id"`
			At           time.Time       `json:"at"`
			BootID       string          `json:"bootID,omitempty"`
			UID          string          `json:"uid,omitempty"`
			ProviderID   string          `json:"providerID,omitempty"`
			Task         string          `json:"task,omitempty"`
			Successor    string          `json:"successor,omitempty"`
			Outcome      string          `json:"outcome,omitempty"`
			Why          string          `json:"why,omitempty"`
			SpentSeconds int             `json:"spentSeconds,omitempty"`
			Provider     string          `json:"provider,omitempty"`
			Before       json.RawMessage `json:"before,omitempty"`
		} `json:"intent,omitempty"`
		Hold *struct {
			Reason  string     `json:"reason"`
			Message string     `json:"message"`
			Since   time.Time  `json:"since"`
			Until   *time.Time `json:"until,omitempty"`
		} `json:"hold,omitempty"`
		Passed []struct {
			Index int    `json:"index"`
			Name  string `json:"name"`
			Why   string `json:"why"`
		} `json:"passed,omitempty"`
		Evidence string `json:"evidence,omitempty"`
		Note     string `json:"note,omitempty"`
		Undo     []struct {
			Kind string    `json:"kind"`
			Key  string    `json:"key,omitempty"`
			At   time.Time `json:"at"`
		} `json:"undo,omitempty"`
		Silence string `json:"silence,omitempty"`
	}
)

// oldParts returns the data keys that the old version reads, each with its Go type. It ignores all
// other keys.
func oldParts() map[string]any {
	return map[string]any{
		"slots": &[]oldSlot{}, "repairs": &map[string][]oldBegun{}, "moves": &map[string][]oldBegun{}, "wide": &[]oldBegun{}, "orphans": &[]oldOrphan{},
		"cures": &map[string][]oldCure{}, "unseen": &[]oldSpan{}, "status": &oldStatus{},
	}
}

// fill sets every field to a value that is not omitted, so that a new field is tested
// automatically.
func fill(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)))
		return
	case remediations.Before:
		v.SetString("{}")
		return
	case remediations.Attempt:
		v.Set(reflect.ValueOf(remediations.Attempt{Name: "reboot", Number: 1}))
		return
	case Unknown:
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(t, v.Index(0))
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(t, key)
		fill(t, value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString("a")
	case reflect.Int:
		v.SetInt(1)
	case reflect.Bool:
		v.SetBool(true)
	default:
		require.Fail(t, "a kind that is not filled", v.Type().String())
	}
}

// wholeLedger returns a ledger with every field of every part set.
func wholeLedger(t *testing.T) *Ledger {
	t.Helper()
	l, r := &Ledger{}, &remediations.Record{}
	fill(t, reflect.ValueOf(l).Elem())
	fill(t, reflect.ValueOf(r).Elem())
	r.V, r.Phase, l.Others = remediations.RecordVersion, remediations.PhaseVerifying, map[string]string{"newer": "1"}
	l.Orphans = []Orphan{orphan(&corev1.Node{}, r)}
	return l
}

// TestAnOlderDrydockReadsTheLedgerAfterARollback: the older version can decode a ledger with every
// field set. The control is a field that the older version refuses.
func TestAnOlderDrydockReadsTheLedgerAfterARollback(t *testing.T) {
	data := wholeLedger(t).Encode()
	require.Equal(t, "1", data[keyVersion])
	for key, into := range oldParts() {
		require.NoError(t, remediations.DecodeStrict(data[key], into), "a field that is new needs a data key of its own; %s of the ledger is %s", key, data[key])
	}
	require.Error(t, remediations.DecodeStrict(`{"wentBack":{}}`, &oldStatus{}), "the control")
	for _, key := range []string{keyEnds, keyGPUs, keyStatusMore} {
		require.Contains(t, data, key)
		require.NotContains(t, oldParts(), key)
	}
}

// TestTheStatusUnderTwoKeysIsOne: no field is lost. Data of a version that wrote all fields under
// one key can be read, too.
func TestTheStatusUnderTwoKeysIsOne(t *testing.T) {
	l := wholeLedger(t)
	l.Orphans = nil // a real orphan has another form
	l.Status.Unknown, l.Status.UnknownMore = `{"later":1}`, `{"admission":{"later":2},"latest":3}`
	read, err := Decode(l.Encode())
	require.NoError(t, err)
	require.Equal(t, l.Status, read.Status)
	require.Equal(t, l.Encode(), read.Encode())
	shown := remediations.EncodeJSON(l.Status)
	for _, field := range []string{`"later":1`, `"later":2`, `"latest":3`, `"wentBack":{`, `"mode":"a"`} {
		require.Contains(t, shown, field, "people see all of it")
	}

	l.Status.Unknown, l.Status.UnknownMore = "", ""
	data := l.Encode()
	data[KeyStatus] = remediations.EncodeJSON(l.Status)
	delete(data, keyStatusMore)
	read, err = Decode(data)
	require.NoError(t, err)
	require.Equal(t, l.Status, read.Status)
	require.Equal(t, l.Encode(), read.Encode(), "from then on they stand under two")

	l.Status = Status{Mode: "enforce", Limited: []string{}, Unwritten: map[string]string{}}
	require.NotContains(t, l.Encode(), keyStatusMore, "there is nothing of it")
}

// TestTheLongerHoldOfTheTwoStatusKeysCounts: a version that wrote all fields under one key did not
// update the other key.
func TestTheLongerHoldOfTheTwoStatusKeysCounts(t *testing.T) {
	noon := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	early, late := &WentBack{Why: "early", Until: noon}, &WentBack{Why: "late", Until: noon.Add(time.Hour)}
	for name, c := range map[string]struct{ first, more, want *WentBack }{
		"the control":                  {nil, early, early},
		"the first key has the later":  {late, early, late},
		"the second key has the later": {early, late, late},
		"the second key has none":      {late, nil, late},
	} {
		t.Run(name, func(t *testing.T) {
			l := &Ledger{Repairs: map[string][]Begun{}, Status: Status{WentBack: c.more, Aside: "another installation is in charge"}}
			data := l.Encode()
			data[KeyStatus] = remediations.EncodeJSON(Status{WentBack: c.first})
			read, err := Decode(data)
			require.NoError(t, err)
			require.Equal(t, c.want, read.Status.WentBack)
			require.NotContains(t, read.Encode()[KeyStatus], "wentBack")
		})
	}
}
