package output

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"assay/corpus"
)

// Verify checks a release folder: every listed file is there with its hash, no other file is, tables
// have the manifest's row counts and parse, ids are sorted and unique, and every reference of a pair
// leads to a row. It returns what is wrong, in order; an error means that it could not look.
func Verify(ctx context.Context, dir string) (problems []string, err error) {
	v := &verifier{dir: dir, ids: map[string]map[[8]byte]bool{}, gold: map[[8]byte]bool{}}
	if err := v.run(ctx); err != nil {
		return v.problems, fmt.Errorf("verify %s: %w", dir, err)
	}
	return v.problems, nil
}

// IsRelease reports whether a folder has what every release begins with.
func IsRelease(dir string) bool {
	for _, name := range []string{sumsName, manifestName} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || !info.Mode().IsRegular() {
			return false
		}
	}
	return true
}

type verifier struct {
	dir      string
	problems []string
	ids      map[string]map[[8]byte]bool // table -> ids, hashed: a million rows fit in memory
	gold     map[[8]byte]bool            // by claim that is true or false: which

	irregular bool // something stands where a file should, so that nothing more is read
}

func (v *verifier) bad(format string, args ...any) {
	v.problems = append(v.problems, fmt.Sprintf(format, args...))
}

func (v *verifier) run(ctx context.Context) error {
	if info, err := os.Lstat(filepath.Join(v.dir, sumsName)); err == nil && !info.Mode().IsRegular() {
		v.bad("%s is no file but %s", sumsName, info.Mode().Type())
		return nil
	}
	sums, err := os.ReadFile(filepath.Join(v.dir, sumsName))
	if errors.Is(err, fs.ErrNotExist) {
		v.bad("%s is missing: this folder is no release", sumsName)
		return nil
	} else if err != nil {
		return err
	}
	listed := map[string]string{}
	for _, line := range strings.Split(strings.TrimRight(string(sums), "\n"), "\n") {
		sum, path, ok := strings.Cut(line, "  ")
		if !ok || !filepath.IsLocal(filepath.FromSlash(path)) {
			v.bad("%s: line %q is not a hash and a path", sumsName, line)
			continue
		}
		listed[path] = sum
	}
	if err := v.hashes(ctx, listed); err != nil {
		return err
	}
	if v.irregular {
		return nil // a pipe has no end, and a link leads elsewhere
	}
	m, ok := v.manifest(listed)
	if !ok {
		return nil
	}
	return v.tables(ctx, m)
}

func (v *verifier) hashes(ctx context.Context, listed map[string]string) error {
	for _, path := range sortedKeys(listed) {
		full := filepath.Join(v.dir, filepath.FromSlash(path))
		if info, err := os.Lstat(full); err == nil && !info.Mode().IsRegular() {
			v.irregular = true
			v.bad("%s is no file but %s", path, info.Mode().Type())
			continue
		}
		got, err := hashFile(full)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			v.bad("%s is listed but missing", path)
		case err != nil:
			return err
		case got != listed[path]:
			v.bad("%s has changed: SHA-256 %s, listed %s", path, got, listed[path])
		}
	}
	var extra []string
	err := filepath.WalkDir(v.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(v.dir, path)
		if err != nil {
			return err
		}
		if rel = filepath.ToSlash(rel); rel != sumsName && listed[rel] == "" {
			extra = append(extra, rel)
		}
		return ctx.Err()
	})
	sort.Strings(extra)
	for _, path := range extra {
		v.bad("%s is not listed in %s", path, sumsName)
	}
	return err
}

func hashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func (v *verifier) manifest(listed map[string]string) (Manifest, bool) {
	var m Manifest
	data, err := os.ReadFile(filepath.Join(v.dir, manifestName))
	if err != nil {
		return m, false // already reported as missing
	}
	if err := json.Unmarshal(data, &m); err != nil {
		v.bad("%s does not parse: %v", manifestName, err)
		return m, false
	}
	if m.Schema != schema {
		v.bad("%s has schema %d, this program reads %d", manifestName, m.Schema, schema)
		return m, false
	}
	for _, f := range m.Files {
		if listed[f.Path] != f.SHA256 {
			v.bad("%s: %s and %s disagree about its hash", f.Path, manifestName, sumsName)
		}
	}
	return m, true
}

// tables reads every table once, in the order in which references point.
func (v *verifier) tables(ctx context.Context, m Manifest) error {
	labels, leaks := map[string]int{}, newLeakage()
	var found clusters
	readers := map[string]func(line []byte) (key string, err error){
		"data/claims.jsonl":    func(line []byte) (string, error) { return v.claim(line, &found) },
		"data/documents.jsonl": v.document,
		"data/annotations.jsonl": func(line []byte) (string, error) {
			return idOf(line)
		},
		"data/pairs.jsonl":    func(line []byte) (string, error) { return v.pair(line, labels, leaks) },
		"data/verdicts.jsonl": v.verdict,
		"data/mentions.jsonl": v.mention,
		"data/events.jsonl":   v.event,
		"data/controls.jsonl": v.control,
	}
	order := []string{"data/claims.jsonl", "data/documents.jsonl", "data/annotations.jsonl", "data/pairs.jsonl", "data/verdicts.jsonl", "data/mentions.jsonl", "data/events.jsonl", "data/controls.jsonl"}
	byPath := map[string]File{}
	for _, f := range m.Files {
		byPath[f.Path] = f
	}
	for _, path := range order {
		f, ok := byPath[path]
		if !ok {
			continue
		}
		rows, err := v.lines(ctx, path, readers[path])
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(strings.TrimPrefix(path, "data/"), ".jsonl")
		if rows != f.Rows || rows != m.Counts[name] {
			v.bad("%s has %d rows, the manifest says %d (count %d)", path, rows, f.Rows, m.Counts[name])
		}
	}
	if all, differ := found.count(); all != m.Counts["clusters"] || differ != m.Counts["conflicts"] {
		if _, ok := byPath["data/claims.jsonl"]; ok {
			v.bad("data/claims.jsonl has %d clusters, %d with different verdicts, the manifest says %d and %d", all, differ, m.Counts["clusters"], m.Counts["conflicts"])
		}
	}
	if _, ok := byPath["data/pairs.jsonl"]; ok {
		for _, l := range sortedKeys(m.Labels) {
			if labels[l] != m.Labels[l] {
				v.bad("label %s has %d pairs, the manifest says %d", l, labels[l], m.Labels[l])
			}
		}
		for _, l := range sortedKeys(m.Leakage) { // none in releases of earlier versions
			if leaks[l] != m.Leakage[l] {
				v.bad("flag %s is on %d pairs, the manifest says %d", l, leaks[l], m.Leakage[l])
			}
		}
	}
	for _, f := range m.Files {
		if strings.HasSuffix(f.Path, ".csv") {
			if err := v.csv(f); err != nil {
				return err
			}
		}
	}
	return nil
}

// lines reads a table of JSON lines; check returns the sort key of a row.
func (v *verifier) lines(ctx context.Context, path string, check func([]byte) (string, error)) (rows int, err error) {
	f, err := os.Open(filepath.Join(v.dir, filepath.FromSlash(path)))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil // already reported
	} else if err != nil {
		return 0, err
	}
	defer f.Close()
	ids := map[[8]byte]bool{}
	v.ids[path] = ids
	last := ""
	for r := bufio.NewReaderSize(f, 1<<20); ; {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			if len(line) > 0 {
				v.bad("%s: the last line has no line end", path)
			}
			return rows, nil
		} else if err != nil {
			return rows, err
		}
		rows++
		if rows%1024 == 0 && ctx.Err() != nil {
			return rows, ctx.Err()
		}
		key, err := check(line)
		if err != nil {
			v.bad("%s line %d: %v", path, rows, err)
			continue
		}
		if key <= last {
			v.bad("%s line %d: %q after %q: rows are not sorted or not unique", path, rows, key, last)
		}
		last = key
		ids[short(key)] = true
	}
}

func short(key string) [8]byte {
	sum := sha256.Sum256([]byte(key))
	return [8]byte(sum[:8])
}

func idOf(line []byte) (string, error) {
	var row struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(line, &row); err != nil {
		return "", err
	}
	if row.ID == "" {
		return "", errors.New("row has no id")
	}
	return row.ID, nil
}

// claim checks what a claim says about its category and about where it stands, and that a cluster is named by
// its smallest claim, which comes first.
func (v *verifier) claim(line []byte, found *clusters) (string, error) {
	id, err := idOf(line)
	if err != nil {
		return "", err
	}
	var row ClaimRow
	if err := json.Unmarshal(line, &row); err != nil {
		return "", err
	}
	if row.Category != "" {
		if _, err := corpus.CategoryNamed(row.Category); err != nil {
			return "", fmt.Errorf("claim %s: %w", id, err)
		}
	}
	if row.CategoryConfidence < 0 || row.CategoryConfidence > 1 || (row.Category == "") != (row.CategoryFrom == "") {
		return "", fmt.Errorf("claim %s: category %q from %q with confidence %v", id, row.Category, row.CategoryFrom, row.CategoryConfidence)
	}
	if row.StatedStart < 0 || row.StatedEnd < row.StatedStart || (row.StatedURL == "") != (row.StatedEnd == 0) {
		return "", fmt.Errorf("claim %s: stated at %q from %d to %d", id, row.StatedURL, row.StatedStart, row.StatedEnd)
	}
	found.add(row)
	if row.VerdictBinary == "true" || row.VerdictBinary == "false" {
		v.gold[short(id)] = row.VerdictBinary == "true"
	}
	if row.Cluster != "" && row.Cluster != id && !v.ids["data/claims.jsonl"][short(row.Cluster)] {
		v.bad("data/claims.jsonl: claim %s is of the cluster %q, which is no claim before it", id, row.Cluster)
	}
	return id, nil
}

func (v *verifier) document(line []byte) (string, error) {
	var row DocumentRow
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&row); err != nil {
		return "", err
	}
	if sealed := (corpus.Document{Title: row.Title, Text: row.Text}).Seal().SHA256; sealed != row.SHA256 {
		return "", fmt.Errorf("document %s: its text has SHA-256 %s, the row says %s", row.ID, sealed, row.SHA256)
	}
	return row.ID, nil
}

func (v *verifier) pair(line []byte, labels map[string]int, leaks leakage) (string, error) {
	var row PairRow
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&row); err != nil {
		return "", err
	}
	labels[row.Label]++
	leaks.add(row)
	switch corpus.StanceLabel(row.Label) {
	case corpus.Supporting, corpus.Misleading, corpus.Unrelated:
	default:
		return "", fmt.Errorf("label %q is none of %v", row.Label, corpus.StanceLabels)
	}
	if row.Role != "" && row.Role != string(corpus.RoleOf(corpus.StanceLabel(row.Label))) {
		return "", fmt.Errorf("a document labelled %s has the role %q", row.Label, row.Role)
	}
	if gold, ok := v.gold[short(row.ClaimID)]; ok {
		answer := corpus.Answer(row.Answer)
		if is := corpus.LabelOf(answer, gold); row.Label != string(is) {
			return "", fmt.Errorf("the answer %q to a claim that is %v is %s, and the label is %s", row.Answer, gold, is, row.Label)
		}
		if is := corpus.EffectOf(corpus.Answer(row.ZeroAnswer), answer, gold); row.Effect != string(is) {
			return "", fmt.Errorf("the answer %q after %q to a claim that is %v has the effect %q, and the row says %q", row.Answer, row.ZeroAnswer, gold, is, row.Effect)
		}
	}
	refs := []reference{{"data/claims.jsonl", row.ClaimID}, {"data/documents.jsonl", row.DocumentID}, {"data/annotations.jsonl", row.Call}}
	votes := map[corpus.StanceLabel]bool{}
	for _, a := range row.Panel {
		votes[a.Label] = true
		if a.Call != "" {
			refs = append(refs, reference{"data/annotations.jsonl", a.Call})
		}
	}
	if row.Consensus != "" && !votes[corpus.StanceLabel(row.Consensus)] {
		return "", fmt.Errorf("the consensus %q is nobody's label", row.Consensus)
	}
	return row.ClaimID + "\x00" + row.DocumentID, v.lead(refs...)
}

// control checks a row of the shuffled control.
func (v *verifier) control(line []byte) (string, error) {
	var row ControlRow
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&row); err != nil {
		return "", err
	}
	if row.Role != string(corpus.RoleRandom) {
		return "", fmt.Errorf("a control has the role %q, want %s", row.Role, corpus.RoleRandom)
	}
	if labelled := slices.Contains(corpus.StanceLabels, corpus.StanceLabel(row.Label)); labelled != (row.Call != "") || !labelled && row.Label != "" {
		return "", fmt.Errorf("a control has the label %q by the call %q", row.Label, row.Call)
	}
	refs := []reference{{"data/claims.jsonl", row.ClaimID}, {"data/documents.jsonl", row.DocumentID}}
	if row.Call != "" {
		refs = append(refs, reference{"data/annotations.jsonl", row.Call})
	}
	return row.ClaimID + "\x00" + row.DocumentID, v.lead(refs...)
}

func (v *verifier) verdict(line []byte) (string, error) {
	var row VerdictRow
	if err := strictly(line, &row); err != nil {
		return "", err
	}
	if err := row.check(); err != nil {
		return "", err
	}
	refs := []reference{{"data/claims.jsonl", row.ClaimID}}
	if row.Call != "" {
		refs = append(refs, reference{"data/annotations.jsonl", row.Call})
	}
	for _, e := range row.Evidence {
		refs = append(refs, reference{"data/documents.jsonl", e.DocumentID})
	}
	return row.ClaimID, v.lead(refs...)
}

// mention checks that a mention is one of the text that it names, as far as the row itself tells.
func (v *verifier) mention(line []byte) (string, error) {
	var row MentionRow
	if err := strictly(line, &row); err != nil {
		return "", err
	}
	if err := row.check(); err != nil {
		return "", err
	}
	table := "data/claims.jsonl"
	if row.Of == OfDocument {
		table = "data/documents.jsonl"
	}
	return row.Key(), v.lead(reference{table, row.ID}, reference{"data/annotations.jsonl", row.Call})
}

func (v *verifier) event(line []byte) (string, error) {
	var row EventRow
	if err := strictly(line, &row); err != nil {
		return "", err
	}
	if err := row.check(); err != nil {
		return "", err
	}
	return row.Key(), v.lead(reference{"data/claims.jsonl", row.ClaimID}, reference{"data/annotations.jsonl", row.Call})
}

// strictly decodes a row that has no other columns than ours.
func strictly(line []byte, row any) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	return d.Decode(row)
}

// A reference is the id of a row in another table.
type reference struct{ path, id string }

// lead reports the first reference that leads nowhere.
func (v *verifier) lead(refs ...reference) error {
	for _, ref := range refs {
		if !v.ids[ref.path][short(ref.id)] {
			return fmt.Errorf("%q does not lead to a row of %s", ref.id, ref.path)
		}
	}
	return nil
}

func (v *verifier) csv(f File) error {
	file, err := os.Open(filepath.Join(v.dir, filepath.FromSlash(f.Path)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // already reported
	} else if err != nil {
		return err
	}
	defer file.Close()
	r := csv.NewReader(bufio.NewReaderSize(file, 1<<20))
	r.ReuseRecord = true
	rows := -1 // the header
	for {
		_, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		var bad *csv.ParseError
		if errors.As(err, &bad) {
			v.bad("%s: %v", f.Path, err)
			return nil
		} else if err != nil {
			return err
		}
		rows++
	}
	if rows != f.Rows {
		v.bad("%s has %d rows, the manifest says %d", f.Path, rows, f.Rows)
	}
	return nil
}

// Compare says how the files of two releases differ, by their lists of hashes.
func Compare(a, b string) (differences []string, err error) {
	var sums [2]map[string]string
	for i, dir := range []string{a, b} {
		data, err := os.ReadFile(filepath.Join(dir, sumsName))
		if err != nil {
			return nil, fmt.Errorf("compare releases: %w", err)
		}
		sums[i] = map[string]string{}
		for _, line := range strings.Split(strings.TrimRight(string(data), "\n"), "\n") {
			sum, path, _ := strings.Cut(line, "  ")
			sums[i][path] = sum
		}
	}
	for _, path := range sortedKeys(sums[0]) {
		switch other, ok := sums[1][path]; {
		case !ok:
			differences = append(differences, path+" is only in the first")
		case other != sums[0][path]:
			differences = append(differences, path+" differs")
		}
	}
	for _, path := range sortedKeys(sums[1]) {
		if _, ok := sums[0][path]; !ok {
			differences = append(differences, path+" is only in the second")
		}
	}
	return differences, nil
}
