package assay

import (
	"strings"
	"testing"
)

// A claim whose search failed has no trace; what is said instead is why.
func TestTraceOfAFailedSearch(t *testing.T) {
	for shown, want := range map[string]string{
		`{"items":[{"stage":"parse/rows","fail":null},{"stage":"plan/gpe","fail":{"class":"transient","reason":"the engine is down"}}]}`: "show c_1: its search failed (transient): the engine is down",
		`{"items":[{"stage":"parse/rows"}]}`: "show c_1: no search is stored for it; a claim (c_...) has one once a build planned it",
	} {
		var out strings.Builder
		if err := WriteTrace(&out, "c_1", []byte(shown)); err == nil || err.Error() != want || out.Len() > 0 {
			t.Errorf("%s gives %q and %v, want %q", shown, out.String(), err, want)
		}
	}
}
