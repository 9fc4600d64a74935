package assay

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"assay/pipeline"
)

// maxSocketPath is what a unix socket's address holds on the systems that we run on.
const maxSocketPath = 100

// socketPath is where the process that holds a workspace answers. A path that is too long for a
// socket is replaced by a hashed name in the temporary folder.
func socketPath(dir string) string {
	abs, err := filepath.Abs(dir)
	if err != nil {
		abs = dir
	}
	// Whichever link leads to a workspace, its processes meet at one socket.
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		abs = real
	}
	path := filepath.Join(abs, stateDir, "sock")
	if len(path) <= maxSocketPath {
		return path
	}
	sum := sha256.Sum256([]byte(abs))
	return filepath.Join(os.TempDir(), "assay-"+hex.EncodeToString(sum[:8])+".sock")
}

// patience is how long a backup that is not read on keeps a process from its end.
const patience = time.Minute

// ErrNoAnswer says that no process answers on the socket of a workspace which one holds: it opens the
// workspace just now, has come to its end, or is of a kind that answers nothing.
var ErrNoAnswer = errors.New("the process that holds the workspace does not answer questions")

// Serve answers questions about the workspace on its socket until the returned func is called, which waits
// for answers that are being read, unless ctx ends.
func (w *Workspace) Serve(ctx context.Context) (stop func() error, err error) {
	path := socketPath(w.Dir)
	// The store's lock is ours, so a socket that is there belongs to a process that was killed.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("serve %s: %w", path, err)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("serve %s: %w", path, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("serve %s: %w", path, err), l.Close())
	}
	s := &http.Server{Handler: w.api(), ReadHeaderTimeout: 10 * time.Second}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	return func() error {
		var err error
		if s.Shutdown(ctx) != nil {
			err = s.Close()
		}
		if serveErr := <-done; !errors.Is(serveErr, http.ErrServerClosed) {
			err = errors.Join(err, serveErr)
		}
		return err
	}, nil
}

func (w *Workspace) api() http.Handler {
	mux := http.NewServeMux()
	answer := func(pattern string, f func(r *http.Request) (any, error)) {
		mux.HandleFunc("GET "+pattern, func(rw http.ResponseWriter, r *http.Request) {
			v, err := f(r)
			if err != nil {
				http.Error(rw, err.Error(), http.StatusBadRequest)
				return
			}
			rw.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(rw).Encode(v) // a reader that hangs up is its own affair
		})
	}
	answer("/v1/status", func(r *http.Request) (any, error) { return w.Status(r.Context()) })
	answer("/v1/sources", func(r *http.Request) (any, error) { return w.Sources(r.Context()) })
	answer("/v1/why", func(r *http.Request) (any, error) { return w.Why(r.Context(), r.FormValue("item")) })
	answer("/v1/show", func(r *http.Request) (any, error) { return w.Show(r.Context(), r.FormValue("id")) })
	answer("/v1/ls", func(r *http.Request) (any, error) {
		var q ListQuery
		if err := json.Unmarshal([]byte(r.FormValue("q")), &q); err != nil {
			return nil, err
		}
		return w.List(r.Context(), q)
	})
	mux.HandleFunc("GET /v1/backup", func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Trailer", "Assay-Records, Assay-Error")
		n, err := w.Backup(r.Context(), patientWriter{rw, http.NewResponseController(rw)})
		rw.Header().Set("Assay-Records", strconv.Itoa(n))
		if err != nil {
			rw.Header().Set("Assay-Error", err.Error())
		}
	})
	return mux
}

// A patientWriter gives its reader a while for every write.
type patientWriter struct {
	io.Writer
	c *http.ResponseController
}

func (p patientWriter) Write(b []byte) (int, error) {
	if err := p.c.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return 0, err
	}
	return p.Writer.Write(b)
}

// Remote asks the process that holds a workspace.
type Remote struct{ client *http.Client }

// Dial returns a Remote for the workspace in dir if a process answers on its socket, else ErrNoAnswer. A
// Remote whose process has come to its end returns ErrNoAnswer too, unless the answer had begun.
func Dial(ctx context.Context, dir string) (*Remote, error) {
	path := socketPath(dir)
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoAnswer, err)
	}
	if err := c.Close(); err != nil {
		return nil, err
	}
	return &Remote{&http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return d.DialContext(ctx, "unix", path) },
	}}}, nil
}

// Close ends the connections to the process.
func (r *Remote) Close() { r.client.CloseIdleConnections() }

func (r *Remote) get(ctx context.Context, path string, query url.Values) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://workspace"+path+"?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoAnswer, err)
	}
	if resp.StatusCode != http.StatusOK {
		text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
		return nil, errors.Join(errors.New(string(text)), err, resp.Body.Close())
	}
	return resp, nil
}

func ask[T any](ctx context.Context, r *Remote, path string, query url.Values) (v T, err error) {
	resp, err := r.get(ctx, path, query)
	if err != nil {
		return v, err
	}
	defer resp.Body.Close()
	return v, json.NewDecoder(resp.Body).Decode(&v)
}

// Status asks for Workspace.Status.
func (r *Remote) Status(ctx context.Context) (StatusReport, error) {
	return ask[StatusReport](ctx, r, "/v1/status", nil)
}

// Sources asks for Workspace.Sources.
func (r *Remote) Sources(ctx context.Context) ([]SourceState, error) {
	return ask[[]SourceState](ctx, r, "/v1/sources", nil)
}

// Why asks for Workspace.Why.
func (r *Remote) Why(ctx context.Context, item string) ([]pipeline.Explanation, error) {
	return ask[[]pipeline.Explanation](ctx, r, "/v1/why", url.Values{"item": {item}})
}

// List asks for Workspace.List.
func (r *Remote) List(ctx context.Context, q ListQuery) ([]Listed, error) {
	data, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	return ask[[]Listed](ctx, r, "/v1/ls", url.Values{"q": {string(data)}})
}

// Show asks for Workspace.Show.
func (r *Remote) Show(ctx context.Context, id string) (json.RawMessage, error) {
	return ask[json.RawMessage](ctx, r, "/v1/show", url.Values{"id": {id}})
}

// Backup asks for Workspace.Backup.
func (r *Remote) Backup(ctx context.Context, out io.Writer) (records int, err error) {
	resp, err := r.get(ctx, "/v1/backup", nil)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(out, resp.Body); err != nil {
		return 0, fmt.Errorf("read the backup from the process that holds the workspace: %w; run the same command again", err)
	}
	if text := resp.Trailer.Get("Assay-Error"); text != "" {
		return 0, errors.New(text)
	}
	return strconv.Atoi(resp.Trailer.Get("Assay-Records"))
}

var (
	_ Reader = (*Workspace)(nil)
	_ Reader = (*Remote)(nil)
)
