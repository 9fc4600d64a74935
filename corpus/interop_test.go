package corpus

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// TestInteropDates answers with what dates say, in the folder in which make interop leaves its questions.
func TestInteropDates(t *testing.T) {
	dir := os.Getenv("ASSAY_INTEROP")
	if dir == "" {
		t.Skip("ASSAY_INTEROP is not set: make interop compares us with reference libraries")
	}
	data, err := os.ReadFile(filepath.Join(dir, "dates.json"))
	if err != nil {
		t.Fatal(err)
	}
	var printed []string
	if err := json.Unmarshal(data, &printed); err != nil {
		t.Fatal(err)
	}
	type reading struct {
		Date
		Error string `json:"error"`
	}
	out := map[string]reading{}
	for _, s := range printed {
		d, err := ReadDate(s)
		r := reading{Date: d}
		if err != nil {
			r.Error = err.Error()
		}
		out[s] = r
	}
	if data, err = json.Marshal(out); err == nil {
		err = os.WriteFile(filepath.Join(dir, "readings.json"), data, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}
