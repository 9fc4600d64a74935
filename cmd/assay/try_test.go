package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// A trial whose pairs get no label ends as a build does whose items fail, and names each pair once.
func TestTrialWithoutLabels(t *testing.T) {
	l := newLab(t, 3, "")
	l.must(0, "build")
	l.model.set(func(m *modelStub) {
		m.reply = func(string) (int, string, string) { return http.StatusOK, "I cannot help with that.", "content_filter" }
	})
	out, errs := l.must(3, "build", "--try", "2")
	if errs != "" || strings.Count(out, "no label for p_") != 2 || strings.Contains(out, ": label p_") || !strings.Contains(out, ": filtered (call ") {
		t.Errorf("the trial says\n%s%s", out, errs)
	}
	if out, _ := l.must(3, "build", "--try", "2", "--json"); !strings.Contains(out, fmt.Sprintf("%q: %d", "pairs", 2)) {
		t.Errorf("as JSON:\n%s", out)
	}
}
