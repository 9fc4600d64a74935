package main

import (
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// playWeb plays hosts to the program in a session: web FOLDER CONFIG. The folder's urls.tsv has a line for each
// file: its name, address, status and media type; an address without a query answers for its whole path, and
// at the host of one without a file nobody takes a connection. Of an address that ends in .gz the file is packed,
// with the line ends of HTTP. The word WEB in the configuration becomes runtime.resolve, and the hosts' certificate is trusted.
func playWeb(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: web FOLDER CONFIG")
	}
	w := newWeb(deferred{ts})
	plain, secure := map[string]bool{}, map[string]bool{}
	var resolve []string
	for line := range strings.Lines(ts.ReadFile(filepath.Join(args[0], "urls.tsv"))) {
		cells := append(strings.Split(strings.TrimSuffix(line, "\n"), "\t"), "", "")
		u, err := url.Parse(cells[1])
		ts.Check(err)
		if cells[0] == "" {
			resolve = append(resolve, fmt.Sprintf("%s: \"127.0.0.1:1\"", u.Host))
			continue
		}
		hosts := plain
		if u.Scheme == "https" {
			hosts = secure
		}
		hosts[u.Host] = true
		status, kind := http.StatusOK, cells[3]
		if cells[2] != "" {
			status, err = strconv.Atoi(cells[2])
			ts.Check(err)
		}
		if kind == "" {
			kind = "text/html; charset=utf-8"
		}
		body := ts.ReadFile(filepath.Join(args[0], cells[0]))
		if strings.HasSuffix(cells[1], ".gz") {
			body = zipped(ts, strings.ReplaceAll(body, "\n", "\r\n"))
		}
		_, address, _ := strings.Cut(cells[1], "://")
		w.on(address, func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Type", kind)
			if r.Header.Get("Range") != "" {
				http.ServeContent(rw, r, "", time.Time{}, strings.NewReader(body))
				return
			}
			rw.WriteHeader(status)
			fmt.Fprint(rw, body)
		})
	}
	sealed := httptest.NewUnstartedServer(w)
	certificate, roots := certified(ts, slices.Sorted(maps.Keys(secure)))
	sealed.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	sealed.StartTLS()
	ts.Defer(sealed.Close)
	ts.Check(os.WriteFile(ts.MkAbs("roots.pem"), roots, 0o600))
	ts.Setenv("SSL_CERT_FILE", ts.MkAbs("roots.pem"))
	for host := range plain {
		resolve = append(resolve, fmt.Sprintf("%s: %q", host, w.addr()))
	}
	for host := range secure {
		resolve = append(resolve, fmt.Sprintf("%s: %q", host, sealed.Listener.Addr()))
	}
	slices.Sort(resolve)
	config := strings.ReplaceAll(ts.ReadFile(args[1]), "WEB", "{"+strings.Join(resolve, ", ")+"}")
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(config), 0o600))
}

// deferred lets what a session starts end with it.
type deferred struct{ *testscript.TestScript }

func (d deferred) Cleanup(f func()) { d.Defer(f) }

// certified makes a certificate of some hosts, and the file of roots by which it is trusted.
func certified(ts *testscript.TestScript, hosts []string) (tls.Certificate, []byte) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ts.Check(err)
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: hosts, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, form, form, &key.PublicKey, key)
	ts.Check(err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// zipped is a text as gzip.
func zipped(ts *testscript.TestScript, text string) string {
	var b strings.Builder
	z := gzip.NewWriter(&b)
	_, err := z.Write([]byte(text))
	ts.Check(errors.Join(err, z.Close()))
	return b.String()
}
