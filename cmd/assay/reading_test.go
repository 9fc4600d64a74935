package main

import (
	"net"
	"path/filepath"
	"testing"

	"assay/kv"
)

// A question to a process that opens its workspace, or has just come to its end, is asked again.
func TestQuestionsToAProcessThatEnds(t *testing.T) {
	t.Parallel()
	for _, question := range [][]string{{"status"}, {"ls", "parse"}, {"list", "sites"}, {"backup", "-"}} {
		l := newLab(t, 1, "")
		held, err := kv.Open(filepath.Join(l.dir, ".assay", "store"), kv.Options{})
		if err != nil {
			t.Fatal(err)
		}
		socket, err := net.Listen("unix", filepath.Join(l.dir, ".assay", "sock"))
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		go func() {
			for range 2 { // whether somebody is there, and the question
				c, err := socket.Accept()
				if err == nil {
					err = c.Close()
				}
				if err != nil {
					ended <- err
					return
				}
			}
			if err := socket.Close(); err != nil {
				ended <- err
				return
			}
			ended <- held.Close()
		}()
		l.must(0, question...)
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
}
