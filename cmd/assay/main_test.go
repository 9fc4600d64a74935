package main

import (
	"os"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"assay": func() { os.Exit(run(clock())) },
	})
}

// clockEnv moves the clock of an assay that a test runs, by a duration; the program itself does not know it.
const clockEnv = "TEST_CLOCK"

func clock() func() time.Time {
	ahead, err := time.ParseDuration(os.Getenv(clockEnv))
	if err != nil {
		return nil
	}
	return func() time.Time { return time.Now().Add(ahead) }
}

// TestScripts runs the sessions of a user that testdata/scripts holds.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/scripts",
		Setup: func(e *testscript.Env) error {
			e.Setenv("TMPDIR", e.WorkDir)
			if dir, err := os.UserCacheDir(); err == nil {
				e.Setenv("XDG_CACHE_HOME", dir) // the reader of PDFs is compiled once, not by every session
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits,
			"lines": lines,
			"web":   playWeb,
			"serve": serveFiles,
		},
	})
}
