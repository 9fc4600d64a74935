package kv

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The tests run themselves as other processes: TestMain does what the variable says and nothing else.
const (
	childTask = "KV_TEST_CHILD"
	childDir  = "KV_TEST_DIR"
)

func TestMain(m *testing.M) {
	task := os.Getenv(childTask)
	if task == "" {
		os.Exit(m.Run())
	}
	if err := children[task](os.Getenv(childDir)); err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
}

var children = map[string]func(dir string) error{
	"hold":             holdStore,
	"open":             openOnce,
	"write":            writeForEver,
	"collect":          collectForEver,
	"count goroutines": countGoroutines,
	"die in gc": func(dir string) error {
		return dieAfterCopy(dir, func(s *Store) error { _, err := s.GC(context.Background(), nil); return err })
	},
	"die in close": func(dir string) error { return dieAfterCopy(dir, (*Store).Close) },
}

// A child is another process on a store. Lines it prints come out of lines.
type child struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
}

func startChild(t *testing.T, task, dir string) *child {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childTask+"="+task, childDir+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{cmd, bufio.NewScanner(out)}
	t.Cleanup(func() {
		if c.cmd.ProcessState == nil {
			c.kill(t)
		}
	})
	return c
}

// line returns the next line, "" at the end.
func (c *child) line() string {
	if !c.lines.Scan() {
		return ""
	}
	return c.lines.Text()
}

// kill ends the process as kill -9 does and returns the lines it had printed.
func (c *child) kill(t *testing.T) (rest []string) {
	t.Helper()
	if err := c.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Error(err)
	}
	return c.wait(t, syscall.SIGKILL)
}

// wait reads what is left and checks how the process ended; signal 0 is a good end.
func (c *child) wait(t *testing.T, signal syscall.Signal) (rest []string) {
	t.Helper()
	for l := c.line(); l != ""; l = c.line() {
		rest = append(rest, l)
	}
	err := c.cmd.Wait()
	if signal == 0 {
		if err != nil {
			t.Errorf("child: %v, it said %q", err, rest)
		}
		return rest
	}
	status, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || status.Signal() != signal {
		t.Errorf("child ended by %v, it said %q, want %v", err, rest, signal)
	}
	return rest
}

// holdStore opens the store, writes one record, says so, and holds the store until its input ends.
func holdStore(dir string) error {
	s, err := Open(dir, Options{Holder: "socket /run/assay.sock"})
	if err != nil {
		return err
	}
	if err := In[string](s, "b", 1).Put("a", "held"); err != nil {
		return err
	}
	fmt.Println("held")
	select {} // until killed
}

func openOnce(dir string) error {
	s, err := Open(dir, Options{})
	if err != nil {
		return err
	}
	fmt.Println(strings.Join(contents(In[string](s, "b", 1), "", ""), " "))
	return s.Close()
}

// tree reads a folder: what is in it, and the bytes of small files.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		fmt.Fprintln(&b, path, info.Size(), info.ModTime().UnixNano())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestHD18SecondOpener(t *testing.T) {
	dir := t.TempDir()
	holder := startChild(t, "hold", dir)
	if got := holder.line(); got != "held" {
		t.Fatalf("holder says %q", got)
	}
	before := tree(t, dir)

	start := time.Now()
	_, err := Open(dir, Options{})
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("the second opener waited %v, want at most 5 s", took)
	}
	var locked *LockedError
	if !errors.As(err, &locked) {
		t.Fatalf("second Open: %v, want a *LockedError", err)
	}
	host, _ := os.Hostname()
	if locked.PID != holder.cmd.Process.Pid || locked.Host != host || locked.Holder != "socket /run/assay.sock" ||
		locked.Since.IsZero() || locked.Dir != dir || !locked.StopsRun() {
		t.Errorf("LockedError = %+v, want the holder %d on %s", locked, holder.cmd.Process.Pid, host)
	}
	for _, part := range []string{"another run holds the store", dir, fmt.Sprint("pid ", locked.PID), "socket /run/assay.sock"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the line %q lacks %q", err, part)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("the message %q is more than a line", err)
	}
	// The same from a third process, and from Restore into the folder.
	other := startChild(t, "open", dir)
	if got := other.line(); !strings.Contains(got, "another run holds the store") {
		t.Errorf("a third process says %q", got)
	}
	if other.wait(t, -1); other.cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("a third process ends with %d, want 1", other.cmd.ProcessState.ExitCode())
	}
	if _, err := Restore(t.Context(), dir, strings.NewReader("")); err == nil {
		t.Error("Restore over a store in use succeeded")
	}
	if after := tree(t, dir); after != before {
		t.Errorf("the refused ones changed the store:\n%s\nto\n%s", before, after)
	}
	holder.kill(t)
}

func TestHD18SameProcess(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, Options{Holder: "first\nline"})
	_, err := Open(dir, Options{})
	var locked *LockedError
	if !errors.As(err, &locked) || locked.PID != os.Getpid() || strings.Contains(err.Error(), "\n") {
		t.Errorf("second Open in this process: %v, want a *LockedError with our pid in one line", err)
	}
	closeTest(t, s)
	closeTest(t, openTest(t, dir, Options{})) // the boundary: right after Close it is free
	if got, err := os.ReadFile(filepath.Join(dir, lockName)); len(got) != 0 || err != nil {
		t.Errorf("lock file after Close holds %q (%v), want it empty", got, err)
	}
}

func TestHD18KilledHolder(t *testing.T) {
	for name, leave := range map[string]func(t *testing.T, dir string){
		"killed": func(*testing.T, string) {},
		"lock file of a pid that lives": func(t *testing.T, dir string) {
			line := fmt.Sprintf(`{"pid":%d,"host":"elsewhere","since":"2026-01-02T03:04:05Z"}`, os.Getpid())
			writeFile(t, filepath.Join(dir, lockName), []byte(line))
		},
		"lock file of garbage": func(t *testing.T, dir string) {
			writeFile(t, filepath.Join(dir, lockName), bytes.Repeat([]byte("x\n"), 5000))
		},
		"lock file of badger": func(t *testing.T, dir string) {
			writeFile(t, filepath.Join(dir, "data-000001", "LOCK"), []byte("1\n"))
		},
		"files without a byte": func(t *testing.T, dir string) {
			writeFile(t, filepath.Join(dir, "data-000001", "000099.vlog"), nil)
			writeFile(t, filepath.Join(dir, "data-000001", "00099.mem"), nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			holder := startChild(t, "hold", dir)
			if got := holder.line(); got != "held" {
				t.Fatalf("holder says %q", got)
			}
			holder.kill(t)
			if _, err := os.Stat(filepath.Join(dir, "data-000001", "LOCK")); err != nil {
				t.Errorf("the killed process left no lock file of badger: %v", err)
			}
			leave(t, dir)
			other := startChild(t, "open", dir)
			if got := other.line(); got != "a=held" {
				t.Errorf("the next process says %q, want the record", got)
			}
			other.wait(t, 0)
		})
	}
}

func writeFile(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestUnknownHolder(t *testing.T) {
	dir := t.TempDir()
	l, clean, err := lockDir(dir, "x", 1)
	if err != nil || !clean {
		t.Fatalf("lockDir = clean %t, %v", clean, err)
	}
	writeFile(t, filepath.Join(dir, lockName), []byte("{half a li"))
	_, _, err = lockDir(dir, "y", 1)
	if want := fmt.Sprintf("another run holds the store %s (holder unknown)", dir); err == nil || err.Error() != want {
		t.Errorf("lockDir = %v, want %q", err, want)
	}
	if err := l.release(); err != nil {
		t.Error(err)
	}
}

func TestOpenWithoutAFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	writeFile(t, file, []byte("x"))
	if _, err := Open(file, Options{}); err == nil {
		t.Error("Open of a file succeeded")
	}
	deep := filepath.Join(t.TempDir(), "a", "b")
	closeTest(t, openTest(t, deep, Options{}))
}
