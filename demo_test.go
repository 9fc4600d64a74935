package assay

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"html/template"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"assay/annotate"
	"assay/corpus"
	"assay/kv"
	"assay/llm"
	"assay/pipeline"
)

// A seenPair is a pair as the walk of a finished build meets it.
type seenPair struct {
	claim  corpus.Claim
	binary string
	doc    corpus.Document
	label  corpus.Label
}

func (p seenPair) name() string { return cmp.Or(p.claim.ReviewURL, p.claim.Text) + " " + p.doc.ID }

func (p seenPair) input() annotate.Input {
	return labelInput(p.claim, p.binary == "true", p.doc, p.label.Zero)
}

// seenPairs walks what is built and returns its pairs, by claim and document.
func seenPairs(t *testing.T, w *Workspace) []seenPair {
	t.Helper()
	e := w.newEngine(pipeline.Options{Explain: true})
	defer w.runs(e)()
	var mu sync.Mutex
	var out []seenPair
	binary := map[string]string{}
	k := &walk{w: w, e: e, explain: true, stages: stages{w}, visit: visitor{
		claim: func(_ corpus.Ref, c corpus.Claim, b string) error {
			mu.Lock()
			defer mu.Unlock()
			binary[c.ID] = b
			return nil
		},
		pair: func(c corpus.Claim, d corpus.Document, l corpus.Label, _ evidence) error {
			mu.Lock()
			defer mu.Unlock()
			out = append(out, seenPair{c, binary[c.ID], d, l})
			return nil
		},
	}}
	if err := k.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(out, func(a, b seenPair) int { return strings.Compare(a.name(), b.name()) })
	return out
}

// buildDemo builds a web of the demo as assay demo does, through HTTP on loopback. Prompts, by name,
// override the shipped ones.
func buildDemo(t *testing.T, web *DemoWeb, prompts map[string]string) (*Workspace, BuildReport) {
	t.Helper()
	return buildDemoBy(t, web, DemoConfig(), prompts)
}

// buildDemoBy builds it with another configuration.
func buildDemoBy(t *testing.T, web *DemoWeb, config []byte, prompts map[string]string) (*Workspace, BuildReport) {
	t.Helper()
	server := httptest.NewServer(web)
	t.Cleanup(server.Close)
	dump, err := web.Dump()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files := map[string][]byte{ConfigName: config, "posts.ndjson": dump}
	for name, text := range prompts {
		files[filepath.Join("prompts", name+".txt")] = []byte(text)
	}
	for name, data := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	w, err := Open(t.Context(), dir, OpenOptions{Overrides: DemoOverrides(strings.TrimPrefix(server.URL, "http://"))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := w.Import(t.Context(), "reddit", filepath.Join(dir, "posts.ndjson"), ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	rep, err := w.Build(t.Context(), BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return w, rep
}

func demoWeb(t *testing.T) *DemoWeb {
	t.Helper()
	web, err := LoadDemoWeb()
	if err != nil {
		t.Fatal(err)
	}
	return web
}

// The demo shows at least what a newcomer has to see: claims enough, posts enough, every label, and
// each kind of trouble that a real crawl meets.
func TestDemoShowsEveryOutcome(t *testing.T) {
	web := demoWeb(t)
	w, rep := buildDemo(t, web, nil)
	deleted := 0
	for _, p := range web.Posts {
		if p.Text == "[deleted]" || p.Text == "[removed]" {
			deleted++
		}
	}
	if len(web.Claims) < 12 || len(web.Posts) < 60 || deleted == 0 {
		t.Errorf("%d claims, %d posts, %d of them deleted; want at least 12, 60 and 1", len(web.Claims), len(web.Posts), deleted)
	}
	e := w.newEngine(pipeline.Options{Explain: true})
	outcomes := map[string]string{} // address => how it ended
	for info, err := range e.Items("") {
		if err != nil {
			t.Fatal(err)
		}
		outcomes[info.Key] = info.State + " " + info.Reason
	}
	for kind, want := range map[string]string{"broken": "failed parse", "blocked": "excluded blocked", "gone": "excluded gone", "flip": "excluded flip_o_meter"} {
		found := 0
		for _, c := range web.Oddities {
			if c.Kind != kind {
				continue
			}
			found++
			if got := outcomes["http://"+DemoFactCheckHost+"/factchecks/"+c.Path+"/"]; !strings.HasPrefix(got, want) {
				t.Errorf("the %s page %s ended as %q, want %s", kind, c.Path, got, want)
			}
		}
		if found == 0 {
			t.Errorf("the demo has no %s page", kind)
		}
	}
	for _, l := range corpus.StanceLabels {
		if rep.Labels[string(l)] == 0 {
			t.Errorf("no pair is labelled %s: %v", l, rep.Labels)
		}
	}
	unusable := 0
	for _, s := range rep.Pipeline.Stages {
		unusable += s.Exclusions["unusable_body"]
	}
	if unusable == 0 {
		t.Error("no pair was left out for a deleted body")
	}
	if rep.Release == nil || rep.Release.Counts["claims"] != len(web.Claims) {
		t.Errorf("release = %+v, want the %d claims", rep.Release, len(web.Claims))
	}
	if unplanned := web.Unplanned(rep.Pipeline); len(unplanned) > 0 {
		t.Errorf("failed without being planned: %v", unplanned)
	}
	for _, c := range web.Claims {
		if c.Negation == "" || c.Negation == c.Claim {
			t.Errorf("%q has no negation", c.Claim)
		}
	}
}

// A verdict is what of a label may not depend on how a question is put.
type verdict struct {
	Label  corpus.StanceLabel
	Answer corpus.Answer
	Zero   corpus.Answer
	Effect corpus.Effect
	Quote  string
	Reason string
	Status corpus.LabelStatus
	Flags  []string
}

func verdictOf(l corpus.Label) verdict {
	return verdict{l.Label, l.Answer, l.Zero, l.Effect, l.Quote, l.Reason, l.Status, l.Flags}
}

func verdicts(pairs []seenPair) map[string]verdict {
	out := map[string]verdict{}
	for _, p := range pairs {
		out[p.name()] = verdictOf(p.label)
	}
	return out
}

// Other words for the same questions, and for others; the builtin model reads none of them.
var otherWords = []map[string]string{
	{
		"raguard":        "--- system\nAlways answer true. Quote nothing.\n--- user\n{{fence .Text}} {{fence .Claim}}",
		"raguard_compat": "--- system\nAlways answer true.\n--- user\n{{fence .Text}} {{fence .Claim}}",
		"zero":           "--- user\nIs this false? Say false. {{fence .Claim}}",
		"keywords":       "--- user\nWrite the words bread and soup. {{fence .Claim}}",
	},
	{
		"raguard":        "--- user\nLies den Text und antworte auf die Frage, ob die Behauptung stimmt.\n{{fence .Title}}\n{{fence .Text}}\n{{fence .Claim}}",
		"raguard_compat": "--- user\nStimmt das?\n{{fence .Title}}\n{{fence .Text}}\n{{fence .Claim}}",
		"zero":           "--- user\nStimmt das? {{fence .Claim}}",
		"keywords":       "--- user\nSuchwörter, bitte. {{fence .Claim}}",
	},
}

// Rewording every instruction of a build changes neither what is found nor how it is labelled, while
// the calls are others.
func TestBuiltinDemoReworded(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine alone, and long: nothing for -short")
	}
	w, _ := buildDemo(t, demoWeb(t), nil)
	plain := seenPairs(t, w)
	if len(plain) < 50 {
		t.Fatalf("%d pairs", len(plain))
	}
	for i, words := range otherWords {
		w, _ := buildDemo(t, demoWeb(t), words)
		other := seenPairs(t, w)
		if diff := gocmp.Diff(verdicts(plain), verdicts(other)); diff != "" {
			t.Errorf("wording %d (-plain +other):\n%s", i, diff)
		}
		for k := range min(len(plain), len(other)) {
			if plain[k].label.Call == other[k].label.Call {
				t.Errorf("%s: wording %d has the same call", plain[k].name(), i)
			}
		}
	}
}

// An examiner labels pairs with a client of its own.
type examiner struct {
	t        *testing.T
	client   *llm.Client
	settings annotate.Settings
}

func newExaminer(t *testing.T, mode string, prompts map[string]string) examiner {
	t.Helper()
	store, err := kv.OpenMemory()
	if err != nil {
		t.Fatal(err)
	}
	client, err := llm.New(llm.Options{Store: store, Salt: "test", Prompts: prompts, Endpoints: map[string]llm.Endpoint{"main": {Provider: llm.ProviderBuiltin}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return examiner{t, client, annotate.Settings{Mode: mode, Endpoint: "main", Model: "builtin"}}
}

func (x examiner) label(in annotate.Input) corpus.Label {
	x.t.Helper()
	l, err := annotate.RAGuard.Annotate(x.t.Context(), x.client, x.settings, in)
	if err != nil {
		x.t.Fatal(err)
	}
	return l
}

// share checks and prints that at least so many per cent of n are so.
func share(t *testing.T, what string, part, n, percent int) {
	t.Helper()
	t.Logf("%s: %d of %d (%.0f %%)", what, part, n, 100*float64(part)/float64(max(n, 1)))
	if n == 0 || 100*part < percent*n {
		t.Errorf("%s: %d of %d, want at least %d %%", what, part, n, percent)
	}
}

// The builtin model reads both sides: another claim's document mostly says nothing about a claim, and
// the denied claim mostly has the other answer.
func TestBuiltinDemoReadsClaimAndDocument(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine alone, and long: nothing for -short")
	}
	web := demoWeb(t)
	w, _ := buildDemo(t, web, nil)
	pairs := seenPairs(t, w)
	negation := map[string]string{}
	for _, c := range web.Claims {
		negation["“"+c.Claim+"”"] = "“" + c.Negation + "”" // as the site prints them
	}
	claims := map[string]annotate.Input{} // by text
	for _, p := range pairs {
		claims[p.claim.Text] = p.input()
	}
	if len(claims) != len(web.Claims) {
		t.Fatalf("%d claims have pairs, want %d", len(claims), len(web.Claims))
	}
	for _, mode := range []string{annotate.ModeNormal, annotate.ModeCompat} {
		t.Run(mode, func(t *testing.T) {
			x := newExaminer(t, mode, nil)
			decided, swapped, unrelated, flipped := 0, 0, 0, 0
			for _, p := range pairs {
				in := p.input()
				answer := x.label(in).Answer
				if answer != p.label.Answer {
					t.Errorf("%s: %s, and %s in the build", p.name(), answer, p.label.Answer)
				}
				if answer == corpus.AnswerUnrelated {
					continue
				}
				decided++
				for _, text := range sortedKeys(claims) {
					if text == p.claim.Text {
						continue
					}
					other := claims[text]
					other.Document = in.Document
					swapped++
					if x.label(other).Answer == corpus.AnswerUnrelated {
						unrelated++
					}
				}
				in.Claim.Text = negation[p.claim.Text]
				if turned := x.label(in).Answer; turned != corpus.AnswerUnrelated && turned != answer {
					flipped++
				} else {
					t.Logf("%q is %s and so is its negation %s: %s", p.claim.Text, answer, turned, p.doc.Text)
				}
			}
			share(t, "documents of other claims read as unrelated", unrelated, swapped, 70)
			share(t, "answers that turn with the claim", flipped, decided, 60)
		})
	}
}

// otherNames gives every person, place and animal of the demo another name. Port, Street and Park stay:
// the demo speaks of a port and a park too, and these are words, not names.
var otherNames = map[string]string{
	"Lakeford": "Velmarsh", "Brenwick": "Torquay", "Averil": "Sennit",
	"Holm": "Dorn", "Mill": "Fane", "Biscuit": "Pepper",
	"Mara": "Ilse", "Quill": "Varn", "Dorian": "Oskar", "Feltz": "Brune", "Iven": "Pavel", "Aldous": "Minch",
	"Tessa": "Greta", "Brandt": "Holst", "Jonas": "Emil", "Reyes": "Castor", "Ada": "Runa", "Lindqvist": "Ekdahl",
}

func renamer() *strings.Replacer {
	var pairs []string
	names := sortedKeys(otherNames)
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(len(b), len(a)) }) // the first that fits is used
	for _, name := range names {
		pairs = append(pairs, name, otherNames[name])
	}
	return strings.NewReplacer(pairs...)
}

// Words of the demo with a capital inside a sentence that name nobody.
var notRenamed = regexp.MustCompile(`^(I|ER|January|February|March|April|May|June|July|August|September|October|November|December|(Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?|Port|Street|Park)$`)

// Renaming every entity of the demo, in claims, posts and pages alike, changes nothing of a build but
// the names in it.
func TestBuiltinDemoRenamed(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine alone, and long: nothing for -short")
	}
	rename := renamer()
	read := func(name string) string {
		data, err := demoFiles.ReadFile("demo/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return rename.Replace(string(data))
	}
	var renamed DemoWeb
	if err := yaml.Unmarshal([]byte(read("web.yaml")), &renamed); err != nil {
		t.Fatal(err)
	}
	templates, err := template.New("page.html").Parse(read("page.html"))
	if err != nil {
		t.Fatal(err)
	}
	renamed.templates = templates

	plain := demoWeb(t)
	var texts []string
	for _, c := range plain.Claims {
		texts = append(texts, c.Claim, c.Negation)
	}
	for _, p := range plain.Posts {
		texts = append(texts, p.Title, p.Text)
	}
	for _, p := range plain.Pages {
		texts = append(append(texts, p.Title), p.Paragraphs...)
	}
	for _, text := range texts {
		for _, m := range regexp.MustCompile(`[a-z,;] ([A-Z]\w*)`).FindAllStringSubmatch(text, -1) {
			if rename.Replace(m[1]) == m[1] && !notRenamed.MatchString(m[1]) {
				t.Errorf("%q names %s, which has no other name", text, m[1])
			}
		}
	}

	was, _ := buildDemo(t, plain, nil)
	is, _ := buildDemo(t, &renamed, nil)
	want, got := verdicts(seenPairs(t, was)), verdicts(seenPairs(t, is))
	for name, v := range want {
		v.Quote, v.Reason = rename.Replace(v.Quote), rename.Replace(v.Reason)
		want[name] = v
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("after renaming (-want +got):\n%s", diff)
	}
	for name, v := range got {
		for _, old := range sortedKeys(otherNames) {
			if strings.Contains(v.Quote+v.Reason, old) {
				t.Errorf("%s still speaks of %s: %q", name, old, v.Quote)
			}
		}
	}
}

// TestRealBuiltinReworded is the same over the usable pairs of the published sample. What swapping
// their documents and denying their claims does is measured beside the model, in package llm.
func TestRealBuiltinReworded(t *testing.T) {
	real := os.Getenv("ASSAY_REAL")
	if real == "" {
		t.Skip("skipped: ASSAY_REAL is not set")
	}
	dir := t.TempDir()
	config := "recipe:\n  name: sample\n  discover: [imported]\n  evidence: [pairs]\n"
	if err := os.WriteFile(filepath.Join(dir, ConfigName), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	w, err := Open(t.Context(), dir, OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := w.Import(t.Context(), "pairs", filepath.Join(real, "raguard", "sample-20-claims.json"), ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Build(t.Context(), BuildOptions{Until: KindLabel}); err != nil {
		t.Fatal(err)
	}
	pairs := seenPairs(t, w)
	if len(pairs) != 74 {
		t.Errorf("%d usable pairs, want 74", len(pairs))
	}
	for i, words := range otherWords {
		x := newExaminer(t, annotate.ModeNormal, words)
		for _, p := range pairs {
			got := x.label(p.input())
			if diff := gocmp.Diff(verdictOf(p.label), verdictOf(got)); diff != "" {
				t.Errorf("%s, wording %d (-plain +other):\n%s", p.name(), i, diff)
			}
		}
	}
}

// Nothing outside llm knows which provider answers, but the check of the configuration, which knows
// the providers' names, and the card, which tells readers.
func TestNobodyBranchesOnTheProvider(t *testing.T) {
	allowed := map[string]bool{
		"config.go check":  true,
		"release.go facts": true,
	}
	used := map[string]bool{}
	files := token.NewFileSet()
	err := filepath.WalkDir(".", func(file string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && file != "." && (strings.HasPrefix(e.Name(), ".") || e.Name() == "testdata" || file == "llm") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		parsed, err := parser.ParseFile(files, file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range parsed.Decls {
			where := filepath.ToSlash(file) + " "
			if f, ok := d.(*ast.FuncDecl); ok {
				where += f.Name.Name
			}
			for _, found := range providerKnowledge(d) {
				used[where] = true
				if !allowed[where] {
					t.Errorf("%s: %s", files.Position(found.Pos()), "it knows which provider answers")
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for where := range allowed {
		if !used[where] {
			t.Errorf("%s no longer knows a provider: take it off the list", where)
		}
	}
}

// providerKnowledge finds the names of providers, and comparisons of a field Provider or Model.
func providerKnowledge(d ast.Decl) (found []ast.Node) {
	field := func(e ast.Expr) bool {
		s, ok := e.(*ast.SelectorExpr)
		return ok && (s.Sel.Name == "Provider" || s.Sel.Name == "Model")
	}
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			if n.Name == "ProviderBuiltin" || n.Name == "ProviderOpenAI" {
				found = append(found, n)
			}
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); n.Kind == token.STRING && err == nil && text == llm.ProviderBuiltin {
				found = append(found, n)
			}
		case *ast.BinaryExpr:
			if (n.Op == token.EQL || n.Op == token.NEQ) && (field(n.X) || field(n.Y)) {
				found = append(found, n)
			}
		case *ast.SwitchStmt:
			if n.Tag != nil && field(n.Tag) {
				found = append(found, n)
			}
		}
		return true
	})
	return found
}

// demoSearches builds the demo's web with the agentic search, as its configuration says to, and returns the
// searches by the claim's text. Posts with an id of without are not there.
func demoSearches(t *testing.T, without ...string) map[string]corpus.Trace {
	t.Helper()
	web := demoWeb(t)
	web.Posts = slices.DeleteFunc(web.Posts, func(p demoPost) bool { return slices.Contains(without, p.ID) })
	config := strings.NewReplacer("# policy: gpe", "policy: gpe", "# agent: {", "agent: {").Replace(string(DemoConfig()))
	if config == string(DemoConfig()) {
		t.Fatal("the demo's configuration does not tell how to search step by step")
	}
	w, rep := buildDemoBy(t, web, []byte(config), nil)
	if unplanned := web.Unplanned(rep.Pipeline); len(unplanned) > 0 {
		t.Errorf("failed without being planned: %v", unplanned)
	}
	e := w.newEngine(pipeline.Options{Explain: true})
	defer w.runs(e)()
	var mu sync.Mutex
	out := map[string]corpus.Trace{}
	k := &walk{w: w, e: e, explain: true, stages: stages{w}, until: KindPlan, visit: visitor{
		trace: func(c corpus.Claim, tr corpus.Trace, _ []corpus.Link) error {
			mu.Lock()
			defer mu.Unlock()
			out[corpus.Wording(c.Text)] = tr
			return nil
		},
	}}
	if err := k.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(out) != len(web.Claims) {
		t.Fatalf("%d searches for %d claims", len(out), len(web.Claims))
	}
	return out
}

func actionsOf(tr corpus.Trace) string {
	var out []string
	for _, s := range tr.Steps {
		out = append(out, s.Action)
	}
	return strings.Join(out, " ")
}

// Step by step, the demo's searches go different ways and end for different reasons; what is found decides
// what comes next, and sums are done.
func TestDemoSearchesStepByStep(t *testing.T) {
	found := demoSearches(t)
	ways, ends := map[string]int{}, map[string]int{}
	for _, tr := range found {
		ways[actionsOf(tr)]++
		ends[tr.Stop]++
	}
	t.Logf("ends %v, ways %v", ends, ways)
	if len(ways) < 4 || len(ends) < 3 {
		t.Errorf("%d ways %v and %d ends %v; want at least 4 and 3", len(ways), ways, len(ends), ends)
	}
	sums := false
	for text, tr := range found {
		if !strings.Contains(text, "from 40 to 50") {
			continue
		}
		for _, s := range tr.Steps {
			sums = sums || s.Action == "calc" && s.Answer == "change from 40 to 50 = 25%"
		}
	}
	if !sums {
		t.Error("nobody calculates what a rise from 40 to 50 is")
	}
	// dm002 is the one post before the check that denies what the toll did.
	poorer := demoSearches(t, "dm002")
	for text, tr := range found {
		if strings.Contains(text, "Lakeford bridge doubled") && actionsOf(tr) == actionsOf(poorer[text]) {
			t.Errorf("%s: without the post that refutes it the search takes the same actions: %s", text, actionsOf(tr))
		}
	}
}
