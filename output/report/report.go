// Package report makes the tables and pictures about a corpus that people look at and paste into papers:
// Markdown and CSV of every table, SVG and PNG of every picture, and one page that holds them all and
// loads nothing. It is a function of Data; the same data gives the same bytes. It stores nothing.
package report

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"assay/stats"
	"assay/stats/plot"
)

// Data is what a report tells of.
type Data struct {
	Name         string // of the corpus
	Corpora      []Corpus
	Agreement    []Agreement  // with published labels
	Panel        *Panel       // nil where nobody else was asked
	Zero         *stats.Table // answer without evidence by verdict, once a claim; nil where nobody asked
	Control      *Control     // nil where none was asked
	Stability    *Stability   // nil where every pair was asked about once
	Strata       []Stratum
	ZeroOutcomes map[string]int // claims by what came of asking about them alone
	Effects      *stats.Table   // effect by label of our pairs; nil where none has one
	EffectsBy    *stats.Table   // effect by verdict
	Constants    []Constant     // what constant answers do to the pairs of Effects
	Costs        []Cost
	// Missing says of a section, by its name, what it could tell and lacks, and which setting makes it.
	Missing map[string][]string
}

// Corpus is one set of labels over claims: ours, or what an imported table published.
type Corpus struct {
	Name      string
	Claims    int
	Labelled  int            // claims with a labelled pair: what shares of claims are of
	Words     float64        // of a claim, by white space, in the mean
	Pairs     int            // claim and document
	Labels    stats.Table    // pairs: label by verdict
	Claimed   stats.Table    // claims that have a label at least once, by verdict
	Both      int            // claims with supporting and misleading
	Unrelated int            // claims with labelled pairs, all of them unrelated
	Verdicts  map[string]int // claims by verdict
}

// A Share is a part of a whole.
type Share struct{ N, Of int }

// cells are the count with its whole, the share, and its Wilson interval.
func (s Share) cells() []string {
	return []string{thousands(s.N) + " of " + thousands(s.Of), percent(s.N, s.Of), stats.Wilson(s.N, s.Of, 0.95).String()}
}

// Agreement is how two raters of the same pairs agree.
type Agreement struct {
	Between   string
	Majority  float64 // share of the reference's most frequent label: what a constant label agrees in
	Readings  []stats.Agreement
	Baselines []Baseline
}

// A Baseline is what a constant answer scores against the reference of an agreement, by reading.
type Baseline struct {
	Answer   string
	Readings []stats.Score
}

// A Constant is what a constant answer does to pairs: how many of each effect.
type Constant struct {
	Answer  string
	Effects map[string]int
}

// Panel is how several annotators of the same pairs agree; the first is that of the corpus.
type Panel struct {
	Pairs        int
	Annotators   []Annotator
	Pairwise     []Agreement // every two
	Coefficients []stats.Coefficient
	Consensus    stats.Table // label of the corpus by that of the panel, "none" for no consensus
	Unanimous    Share
	Disputed     Share // pairs without a consensus, or with another one than their label
}

// Annotator is what one annotator of a panel said.
type Annotator struct {
	Name, Model string
	Outcomes    map[string]int // "labelled", or why there is no label
	Labels      stats.Table    // by verdict
}

// Control is what the annotator said of claims with documents of other claims, and of the pairs of the corpus.
// Bears counts answers other than unrelated; Flips those that the document made wrong, of those whose answer
// without it is known.
type Control struct {
	Claims                                 int
	Outcomes                               map[string]int
	Answers                                stats.Table // by verdict
	Bears, CorpusBears, Flips, CorpusFlips Share
	Constants                              []Constant // over the labelled pairs of the control
}

// Stability is how repeated samples of one annotator came out.
type Stability struct {
	Samples  int
	Unstable Share
	Margin   stats.MeanValue
	ByLabel  stats.Table // by stable, unstable
	ByMargin stats.Table // by verdict
}

// A Stratum is what came of asking about pairs of one kind.
type Stratum struct {
	By, Value                 string // such as verdict, true
	Asked, Labelled, Held     int    // Held: of Asked, labels that wait for a person
	Refused, Filtered, Failed Share  // of Asked
}

// Cost is what the calls of a role to a model came to.
type Cost struct {
	Role, Endpoint, Model                 string
	Calls, Batch                          int // Batch: of Calls, answered by a batch API
	Prompt, Cached, Completion, Reasoning int
	USD                                   float64
	Unpriced                              int
}

// A Section is one part of a report.
type Section struct {
	Name  string
	Doc   string
	Of    func(Data) []Table
	Plots func(Data) []Plot // nil: none
}

// Sections lists every section in the order of the page: one file each.
var Sections = []Section{labels, agreement, panel, controls, stability, strata, effects, cost}

// A Table has a name that is unique within its section.
type Table struct {
	Name    string
	Caption string
	Head    []string
	Rows    [][]string
	Note    string
}

// A Plot is a picture with its file's name.
type Plot struct {
	Name string
	plot.Bars
}

// Write makes the report in a folder, which is replaced, and returns the names of its files. A section
// without tables says what it lacks; one that lacks nothing either is left out.
func Write(dir string, d Data) (files []string, err error) {
	page := pageData{Name: d.Name}
	out := map[string][]byte{}
	for _, s := range Sections {
		part := pageSection{Name: s.Name, Doc: s.Doc, Missing: d.Missing[s.Name]}
		var md strings.Builder
		fmt.Fprintf(&md, "# %s\n\n%s\n", s.Name, s.Doc)
		for _, t := range s.Of(d) {
			md.WriteString("\n" + t.Markdown())
			file := s.Name + "_" + t.Name + ".csv"
			if out[file], err = t.CSV(); err != nil {
				return nil, err
			}
			part.Tables = append(part.Tables, t)
		}
		for _, lack := range part.Missing {
			fmt.Fprintf(&md, "\n%s\n", lack)
		}
		if len(part.Tables)+len(part.Missing) == 0 {
			continue
		}
		if s.Plots != nil {
			for _, p := range s.Plots(d) {
				for _, format := range []string{"svg", "png"} {
					file := s.Name + "_" + p.Name + "." + format
					if out[file], err = p.Draw(format); err != nil {
						return nil, err
					}
				}
				svg := out[s.Name+"_"+p.Name+".svg"]
				part.Plots = append(part.Plots, template.HTML(svg[max(bytes.Index(svg, []byte("<svg")), 0):])) // our own picture
				fmt.Fprintf(&md, "\n![%s](%s_%s.svg)\n", p.Title, s.Name, p.Name)
			}
		}
		out[s.Name+".md"] = []byte(md.String())
		page.Sections = append(page.Sections, part)
	}
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, page); err != nil {
		return nil, fmt.Errorf("write report: %w", err)
	}
	out["index.html"] = b.Bytes()
	for name := range out {
		files = append(files, name)
	}
	slices.Sort(files)
	return files, replace(dir, files, out)
}

// replace writes beside the folder and puts that in its place. Whatever is no report stays.
func replace(dir string, files []string, out map[string][]byte) (err error) {
	dir = filepath.Clean(dir)
	if err := reportAt(dir); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	next, err := os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+"-*")
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(next))
		}
	}()
	if err := os.Chmod(next, 0o755); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	for _, name := range files {
		if err := os.WriteFile(filepath.Join(next, name), out[name], 0o644); err != nil {
			return fmt.Errorf("write report: %w", err)
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return os.Rename(next, dir)
}

// generator stands in every page of a report.
const generator = `<meta name="generator" content="assay report">`

// reportAt refuses a place that holds anything but an older report.
func reportAt(dir string) error {
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is there and is no folder; name another with --to", dir)
	}
	old, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range old {
		if !e.Type().IsRegular() || !isOurs(e.Name()) {
			return fmt.Errorf("%s holds %s, which is none of a report's files; move it, or name another folder with --to", dir, e.Name())
		}
	}
	if len(old) == 0 {
		return nil
	}
	if page, err := os.ReadFile(filepath.Join(dir, "index.html")); err != nil || !bytes.Contains(page, []byte(generator)) {
		return fmt.Errorf("%s holds something that is no report of ours; name another folder with --to", dir)
	}
	return nil
}

// isOurs reports whether a report may hold a file of this name.
func isOurs(name string) bool {
	base, kind, _ := strings.Cut(name, ".")
	switch kind {
	case "html":
		return base == "index"
	case "md", "csv", "svg", "png":
		return slices.ContainsFunc(Sections, func(s Section) bool { return base == s.Name || strings.HasPrefix(base, s.Name+"_") })
	}
	return false
}

// Markdown is the table as GitHub and pandoc read it.
func (t Table) Markdown() string {
	var b strings.Builder
	cell := strings.NewReplacer("|", `\|`, "\n", " ")
	row := func(cells []string) {
		for _, c := range cells {
			b.WriteString("| " + cell.Replace(c) + " ")
		}
		b.WriteString("|\n")
	}
	b.WriteString(t.Caption + "\n\n")
	row(t.Head)
	for i := range t.Head {
		if i == 0 {
			b.WriteString("|---")
		} else {
			b.WriteString("|---:")
		}
	}
	b.WriteString("|\n")
	for _, r := range t.Rows {
		row(r)
	}
	if t.Note != "" {
		b.WriteString("\n" + t.Note + "\n")
	}
	return b.String()
}

// CSV is the table with a header line.
func (t Table) CSV() ([]byte, error) {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	if err := w.WriteAll(append([][]string{t.Head}, t.Rows...)); err != nil {
		return nil, fmt.Errorf("write table %s: %w", t.Name, err)
	}
	return b.Bytes(), nil
}

type pageData struct {
	Name     string
	Sections []pageSection
}

type pageSection struct {
	Name, Doc string
	Tables    []Table
	Missing   []string
	Plots     []template.HTML
}

var pageTemplate = template.Must(template.New("page").Parse(`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">` + generator + `<title>{{.Name}}</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<style>body{font:16px/1.45 sans-serif;max-width:60em;margin:2em auto;padding:0 1em;color:#222}
table{border-collapse:collapse;margin:1em 0}caption{text-align:left;font-weight:bold;padding:.3em 0}
th,td{padding:.2em .8em;border-bottom:1px solid #ddd;text-align:right}th:first-child,td:first-child{text-align:left}
.note{color:#555;font-size:.9em}svg{max-width:100%;height:auto}</style></head>
<body><h1>{{.Name}}</h1>
{{range .Sections}}<h2 id="{{.Name}}">{{.Name}}</h2><p>{{.Doc}}</p>
{{range .Tables}}<table><caption>{{.Caption}}</caption><thead><tr>{{range .Head}}<th>{{.}}</th>{{end}}</tr></thead>
<tbody>{{range .Rows}}<tr>{{range .}}<td>{{.}}</td>{{end}}</tr>
{{end}}</tbody></table>{{with .Note}}<p class="note">{{.}}</p>{{end}}
{{end}}{{range .Missing}}<p class="note">{{.}}</p>
{{end}}{{range .Plots}}<figure>{{.}}</figure>
{{end}}{{end}}</body></html>
`))

// thousands writes a count with commas, as papers do.
func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// percent is a share with one digit, or a dash where there is nothing to share.
func percent(part, of int) string {
	if of == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(of))
}

// slug makes a name that a file can have.
func slug(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '_'
	}, s)
}
