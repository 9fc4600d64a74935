package assay

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
)

// A process that comes to its end lets a backup be read to its own; then it answers nothing.
func TestServeEndsAfterItsAnswers(t *testing.T) {
	f := newFolder(t, t.TempDir())
	f.with(func(w *Workspace) error {
		noise := make([]byte, 4<<20) // more than lies between two processes
		chacha := rand.NewChaCha8([32]byte{})
		if _, err := chacha.Read(noise); err != nil {
			return err
		}
		text, err := json.Marshal(base64.StdEncoding.EncodeToString(noise))
		if err != nil {
			return err
		}
		if err := w.tables.Reports.Put("large", text); err != nil {
			return err
		}
		stop, err := w.Serve(t.Context())
		if err != nil {
			return err
		}
		r, err := Dial(t.Context(), f.dir)
		if err != nil {
			return err
		}
		defer r.Close()
		var got, want bytes.Buffer
		ended := make(chan error, 1)
		end := sync.OnceFunc(func() {
			go func() { ended <- stop() }()
			for {
				other, err := Dial(t.Context(), f.dir)
				if errors.Is(err, ErrNoAnswer) {
					return // it takes no more questions
				}
				if err != nil {
					t.Errorf("dial: %v", err)
					return
				}
				other.Close()
				runtime.Gosched()
			}
		})
		_, err = r.Backup(t.Context(), writerFunc(func(p []byte) (int, error) {
			end()
			return got.Write(p)
		}))
		if err != nil {
			t.Errorf("a backup from a process that ends meanwhile: %v", err)
		}
		if err := <-ended; err != nil {
			t.Errorf("the end: %v", err)
		}
		if _, err := w.Backup(t.Context(), &want); err != nil || !bytes.Equal(got.Bytes(), want.Bytes()) {
			t.Errorf("%d bytes of %d arrived, %v", got.Len(), want.Len(), err)
		}
		if _, err := r.Status(t.Context()); !errors.Is(err, ErrNoAnswer) {
			t.Errorf("a question to a process that has ended: %v", err)
		}
		return nil
	})
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
