package assay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"assay/annotate"
	"assay/llm"
	"assay/pipeline"
)

// Forecast is what a build would ask of models, and what that comes to. It is made by the walk of a dry
// run: every request whose words are known is laid out and counted, and what cannot be known before
// earlier stages have run is a range under a named assumption.
type Forecast struct {
	Stages      []StageForecast `json:"stages"`
	Total       StageForecast   `json:"total"`
	PriceDate   string          `json:"price_date"` // of the price table
	Assumptions []string        `json:"assumptions"`
}

// StageForecast is the part of one stage. Hits are answers that the store has for items which run again.
type StageForecast struct {
	Stage    string        `json:"stage"`
	Items    llm.Range     `json:"items"`  // met by the walk, and more that will come
	Fresh    int           `json:"cached"` // items that do not run
	Hits     int           `json:"hits"`
	Calls    llm.Range     `json:"calls"`
	Prompt   llm.Range     `json:"prompt_tokens"`
	Answer   llm.Range     `json:"answer_tokens"`
	USD      llm.Range     `json:"usd"`
	BatchUSD llm.Range     `json:"batch_usd"`         // what it costs with --batch; calls that no batch API takes cost the same
	Missing  llm.Range     `json:"missing,omitzero"`  // of a replay: answers that are not stored, and that nobody is asked for
	Unpriced []string      `json:"unpriced,omitzero"` // models without a known price; USD lacks them
	Wall     time.Duration `json:"wall_ns"`           // at the configured rates, of the upper ends
}

// foresight collects a forecast during a walk.
type foresight struct {
	calls   *llm.Forecast
	mu      sync.Mutex
	unknown map[string]llm.Range // items that would run, and whose outcome is not known, by stage
}

func newForesight() *foresight {
	return &foresight{calls: llm.NewForecast(), unknown: map[string]llm.Range{}}
}

// fetching are the stages that reach the web or read stored pages and rows, and ask no model.
var fetching = []string{KindDiscover, KindParse, KindRead, KindDocument, KindCluster}

// foresee is pipeline.Options.Foresee. What stages do without asking a model is done: stored pages and
// imported rows are read, so that what lies below them is known.
func (f *foresight) foresee(ctx context.Context, stage string, sure bool, do func(context.Context) error) error {
	err := do(f.calls.With(ctx, stage, sure))
	var excluded interface{ Excluded() string }
	if err == nil || errors.As(err, &excluded) && excluded.Excluded() != "" {
		return err
	}
	r := llm.Range{High: 1}
	if sure {
		r.Low = 1
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.unknown[stage] = f.unknown[stage].Add(r)
	return err
}

func kindOf(stage string) string {
	kind, _, _ := strings.Cut(stage, "/")
	return kind
}

// of sums the items of a kind whose outcome is not known.
func (f *foresight) of(kind string) (r llm.Range) {
	for stage, n := range f.unknown {
		if kindOf(stage) == kind {
			r = r.Add(n)
		}
	}
	return r
}

// growth says how many items of a kind come of one item above that has not run.
type growth struct {
	above, kind string
	high        float64
	says        string
}

// growths are those of this recipe, as far as the walk goes.
func (k *walk) growths() (out []growth) {
	r := k.w.Config.Recipe
	add := func(when bool, g growth) {
		if when && k.reaches(kindOf(g.kind)) {
			out = append(out, g)
		}
	}
	keep := float64(r.Planner.Keep)
	if r.agentic() {
		keep = float64(cmp.Or(r.Planner.Agent.MaxDocuments, 30))
	} else if r.Planner.FollowLinks {
		keep *= 2 // what a post links to is another
	}
	add(r.Extract.Extractor != "", growth{KindRead, KindExtract, 1, "a page of a newsroom gives one document"})
	named := func(above string, documents float64, says string) {
		e := r.Entities
		add(slices.Contains(e.Of, EntitiesOfClaims) && documents == 0, growth{above, KindEntity + "/" + annotate.Entities.Name, 1, says})
		add(e.Events && documents == 0, growth{above, KindEntity + "/" + annotate.Events.Name, 1, says})
		add(slices.Contains(e.Of, EntitiesOfDocuments) && documents > 0, growth{above, KindEntity + "/" + annotate.Entities.Name, documents, says})
	}
	add(slices.Contains(r.CategoryBy, CategoryModel), growth{KindParse, KindCategory, 1, "a page or row gives one claim, and no rule tells its category"})
	if r.searches() {
		add(true, growth{KindParse, KindPlan, 1, "a page or row gives one claim"})
		add(len(r.Categories) > 0, growth{KindCategory, KindPlan, 1, "a claim is of the recipe's categories"})
		add(r.Label.ZeroContext, growth{KindPlan, KindZero, 1, "a search finds something"})
		add(true, growth{KindPlan, KindLabel, keep, fmt.Sprintf("a search keeps up to %.0f documents", keep)})
		add(r.judges(), growth{KindPlan, KindJudge, 1, "a search ends in one draft"})
		named(KindPlan, keep, fmt.Sprintf("a search keeps up to %.0f documents", keep))
	}
	named(KindParse, 0, "a page or row gives one claim")
	named(KindDocument, 1, "a page that is fetched makes one document")
	if len(r.Categories) > 0 {
		named(KindCategory, 0, "a claim is of the recipe's categories")
	}
	add(len(r.Categories) > 0 && !r.searches(), growth{KindCategory, KindZero, 1, "a claim is of the recipe's categories and has a document"})
	add(len(r.Categories) > 0 && !r.searches(), growth{KindCategory, KindLabel, keep, fmt.Sprintf("a claim is of the recipe's categories and has up to %.0f documents", keep)})
	add(r.Label.ZeroContext, growth{KindParse, KindZero, 1, "a page or row gives one claim"})
	add(true, growth{KindParse, KindLabel, keep, fmt.Sprintf("a page or row gives one claim, which has up to %.0f documents", keep)})
	add(true, growth{KindDocument, KindLabel, 1, "a page that is fetched makes one pair"})
	return out
}

// A draw is what a stage asks about labelled pairs that are drawn from all of them: before the labels are there it
// is known how many at most, and in which words, and not which.
type draw struct {
	stage, like string // like: the stage that asks in the same words
	role, as    string // role of the recipe's models, and of the call records
	items       float64
	calls       float64 // of an item
}

// draws are those of the panel and of the control, without what the walk has met.
func (k *walk) draws(more map[string]float64, f *foresight, assume func(string, ...any)) (out []draw) {
	l := k.w.Config.Recipe.Label
	open := float64(k.missing.Load()) + more[KindLabel] // labels to come
	all := float64(k.drawable) + open
	label, zero := k.stageNamed(KindLabel), k.stageNamed(KindZero)
	if len(l.Panel.Annotators) > 0 && k.reaches(KindPanel) {
		n := all
		if l.Panel.Pairs > 0 {
			n = min(n, float64(l.Panel.Pairs))
			open += f.of(KindLabel).High // which come out otherwise, and are drawn by label
		}
		if k.missing.Load() == 0 {
			n = min(n, open)
		}
		if n > 0 {
			assume("%s: %s are asked about up to %.0f pairs, which are drawn once all labels are there; all of them may be pairs that they were not asked about", KindPanel, strings.Join(l.Panel.Annotators, ", "), n)
			for _, role := range l.Panel.Annotators {
				stage := KindPanel + "/" + role
				out = append(out, draw{stage, label, role, KindPanel + ":" + role + ":annotate", n, 1})
				if l.ZeroContext {
					out = append(out, draw{stage + "/" + KindZero, zero, role, KindPanel + ":" + role + ":zero", min(n, float64(k.met.Load())+more[KindZero]), 1})
				}
			}
		}
	}
	if n := min(float64(l.Shuffled), all*(all-1)); n > 0 && open > 0 && k.reaches(KindControl) {
		assume("%s: up to %.0f documents of other claims are asked about, which are dealt once all labels are there", KindControl, n)
		out = append(out, draw{KindControl + "/shuffled", label, roleAnnotate, KindControl + ":annotate", n, float64(max(l.Samples, 1))})
	}
	return out
}

// Tokens of an answer, and of a prompt beside its document, where nothing tells more.
const (
	shortestAnswer = 16
	shortestPrompt = 150
	longestRules   = 1500
	usualLatency   = 2 * time.Second
)

// againShare is how many answers may be asked for once more: one that is cut, unreadable, or quotes what
// is not there.
const againShare = 0.1

// forecast turns what a walk saw into numbers.
func (k *walk) forecast(f *foresight, rep pipeline.Report) (*Forecast, error) {
	pasts, err := k.w.llm.Pasts()
	if err != nil {
		return nil, err
	}
	out := &Forecast{PriceDate: k.w.prices.Date, Total: StageForecast{Stage: "total"}}
	assume := func(format string, args ...any) {
		if s := fmt.Sprintf(format, args...); !slices.Contains(out.Assumptions, s) {
			out.Assumptions = append(out.Assumptions, s)
		}
	}
	found := map[string][]llm.Foreseen{}
	for _, x := range f.calls.Found() {
		found[x.Stage] = append(found[x.Stage], x)
	}
	more := map[string]float64{} // items by kind that nobody has met yet
	for _, g := range k.growths() {
		// What is above may itself not be met yet.
		above := f.of(g.above).High
		if g.above != KindParse && g.above != KindCategory { // claims of later pages are counted with these
			above += more[g.above]
		}
		if above == 0 {
			continue
		}
		more[g.kind] += above * g.high
		assume("%s: %s (%.0f of %s not known)", g.kind, g.says, above, g.above)
	}
	if n := f.of(KindDiscover).High; n > 0 {
		assume("nothing is known of claims that are not discovered yet, and none is counted: %.0f listings are not read, and what they show costs more; counted are the %d claims known now", n, k.met.Load())
	}
	if k.met.Load() == 0 {
		assume("no claim of this recipe is known yet, so nothing that a claim costs is counted; what a build asks grows with the claims that listings, feeds, pages and imported tables bring")
	}
	stages := map[string]*StageForecast{}
	of := func(name string) *StageForecast {
		if stages[name] == nil {
			stages[name] = &StageForecast{Stage: name}
		}
		return stages[name]
	}
	for _, s := range rep.Stages {
		if slices.Contains(fetching, kindOf(s.Name)) {
			continue
		}
		n := 0
		for _, c := range s.Reasons {
			n += c
		}
		of(s.Name).Items, of(s.Name).Fresh = llm.Exactly(float64(n)), s.Fresh
	}
	for stage, list := range found {
		for _, x := range list {
			of(stage).Hits += x.Hits
			k.addKnown(of(stage), x, pasts, assume)
		}
	}
	for _, kind := range sortedKeys(more) {
		role := k.roleOf(kind)
		name := k.stageNamed(kind)
		s := of(name)
		s.Items.High += more[kind]
		m := k.modelOf(role)
		x := llm.Foreseen{Stage: name, Role: role, Endpoint: m.Endpoint, Model: m.Model, Longest: cmp.Or(m.MaxTokens, llm.DefaultMaxTokens)}
		calls := more[kind]
		if kindOf(kind) == KindEntity {
			x.Role = "extract" // as its calls are recorded
		}
		if kind == KindLabel {
			calls *= float64(max(k.w.Config.Recipe.Label.Samples, 1))
		}
		each := k.promptOf(x, found, pasts, assume)
		k.addMore(s, x, calls, each, pasts, assume)
	}
	for _, d := range k.draws(more, f, assume) {
		s, m := of(d.stage), k.w.Config.Recipe.role(d.role)
		s.Items.High += d.items
		x := llm.Foreseen{Stage: d.stage, Role: d.as, Endpoint: m.Endpoint, Model: m.Model, Longest: cmp.Or(m.MaxTokens, llm.DefaultMaxTokens)}
		like := x
		if len(found[d.stage]) == 0 && !pasts[pastOf(x)].Enough() {
			like.Stage, like.Role = d.like, k.roleOf(kindOf(d.like))
		}
		each := k.promptOf(like, found, pasts, assume)
		k.addMore(s, x, d.items*d.calls, each, pasts, assume)
	}
	for _, stage := range sortedKeys(f.unknown) {
		if k.w.replayed && slices.Contains(fetching, kindOf(stage)) {
			assume("%s: %.0f items are not stored, and a replay asks no host for them", stage, f.unknown[stage].High)
		}
	}
	for _, s := range stages {
		if s.Items.High > 0 || s.Calls.High > 0 {
			out.Stages = append(out.Stages, *s)
		}
	}
	order := names(Stages(), func(s StageKind) string { return s.Kind })
	slices.SortFunc(out.Stages, func(a, b StageForecast) int {
		return cmp.Or(cmp.Compare(slices.Index(order, kindOf(a.Stage)), slices.Index(order, kindOf(b.Stage))), cmp.Compare(a.Stage, b.Stage))
	})
	for _, s := range out.Stages {
		t := &out.Total
		t.Items, t.Calls, t.Prompt, t.Answer = t.Items.Add(s.Items), t.Calls.Add(s.Calls), t.Prompt.Add(s.Prompt), t.Answer.Add(s.Answer)
		t.USD, t.BatchUSD = t.USD.Add(s.USD), t.BatchUSD.Add(s.BatchUSD)
		t.Missing = t.Missing.Add(s.Missing)
		t.Fresh, t.Hits, t.Wall = t.Fresh+s.Fresh, t.Hits+s.Hits, t.Wall+s.Wall
		for _, m := range s.Unpriced {
			if !slices.Contains(t.Unpriced, m) {
				t.Unpriced = append(t.Unpriced, m)
			}
		}
	}
	return out, nil
}

func pastOf(x llm.Foreseen) llm.PastKey {
	return llm.PastKey{Role: x.Role, Endpoint: x.Endpoint, Model: x.Model}
}

// promptOf is how long a later prompt of a stage is: as long as those that are known, or as those of the past.
func (k *walk) promptOf(x llm.Foreseen, found map[string][]llm.Foreseen, pasts map[llm.PastKey]llm.Past, assume func(string, ...any)) llm.Range {
	calls, tokens := 0, 0
	for _, y := range found[x.Stage] {
		calls, tokens = calls+y.Calls+y.Unsure, tokens+y.Prompt+y.Maybe
	}
	if p := pasts[pastOf(x)]; calls == 0 && p.Enough() {
		return llm.Exactly(p.Prompt)
	}
	if calls > 0 {
		return llm.Exactly(float64(tokens) / float64(calls))
	}
	each := llm.Range{Low: shortestPrompt, High: longestRules + float64(cmp.Or(k.w.Config.Recipe.Label.DocumentChars, annotate.DefaultDocumentChars))/3}
	assume("%s: a prompt has %.0f to %.0f tokens", x.Stage, each.Low, each.High)
	return each
}

// roleOf is the role of the model that a kind of stage asks; a search step by step asks others besides.
func (k *walk) roleOf(kind string) string {
	if kind == KindPlan && k.w.Config.Recipe.agentic() {
		return "plan"
	}
	return map[string]string{KindExtract: "extract", KindCategory: "category", KindPlan: "keywords", KindEntity: "entities", KindZero: "zero", KindLabel: roleAnnotate, KindJudge: "judge"}[kindOf(kind)]
}

// modelOf is the model of a role as stages choose it: the annotator's where the recipe names none for it.
func (k *walk) modelOf(role string) Role {
	m := k.w.Config.Recipe.role(role)
	if m.Endpoint == "" {
		m = k.w.Config.Recipe.role(roleAnnotate)
		m.MaxTokens = 0
	}
	return m
}

// stageNamed is the stage of a kind that this recipe runs.
func (k *walk) stageNamed(kind string) string {
	r := k.w.Config.Recipe
	switch kind {
	case KindPlan:
		return kind + "/" + r.Planner.Policy
	case KindZero, KindLabel:
		return kind + "/" + r.Label.Protocol
	case KindExtract:
		return kind + "/" + r.Extract.Extractor
	case KindJudge:
		return kind + "/" + r.Judge
	}
	return kind
}

// addKnown puts the calls whose words are known to a stage.
func (k *walk) addKnown(s *StageForecast, x llm.Foreseen, pasts map[llm.PastKey]llm.Past, assume func(string, ...any)) {
	calls := llm.Range{Low: float64(x.Calls), High: float64(x.Calls + x.Unsure)}
	prompt := llm.Range{Low: float64(x.Prompt), High: float64(x.Prompt + x.Maybe)}
	if x.Unsure > 0 {
		assume("%s: %d calls are needed only if what lies above comes out otherwise", s.Stage, x.Unsure)
	}
	k.priced(s, x, calls, prompt, pasts, assume)
}

// addMore puts calls of items that nobody has met yet: from none to so many.
func (k *walk) addMore(s *StageForecast, x llm.Foreseen, most float64, each llm.Range, pasts map[llm.PastKey]llm.Past, assume func(string, ...any)) {
	k.priced(s, x, llm.Range{High: most}, llm.Range{High: most * each.High}, pasts, assume)
}

// priced adds calls with their tokens, money and time.
func (k *walk) priced(s *StageForecast, x llm.Foreseen, calls, prompt llm.Range, pasts map[llm.PastKey]llm.Past, assume func(string, ...any)) {
	rates, ok := k.w.llm.RatesOf(x.Endpoint)
	if !ok || calls.High == 0 {
		return
	}
	if rates.Builtin {
		s.Calls = s.Calls.Add(calls)
		return
	}
	if k.w.replayed {
		s.Missing = s.Missing.Add(calls)
		return
	}
	past := pasts[pastOf(x)]
	answer, latency := llm.Range{Low: shortestAnswer, High: float64(x.Longest)}, usualLatency
	switch {
	case x.Embedded:
		answer = llm.Range{}
	case past.Enough():
		answer, latency = past.Answers, past.Latency
	default:
		assume("%s: an answer of %s has %d to %d tokens, since fewer than 20 are stored", s.Stage, x.Model, shortestAnswer, x.Longest)
	}
	if latency == usualLatency {
		assume("a call takes %s where none is stored", usualLatency)
	}
	off := llm.Counted(x.Model)
	assume("tokens of %s are counted by a public vocabulary, which is %.0f to %+.0f %% off", x.Model, (off.Low-1)*100, (off.High-1)*100)
	if s.Hits+int(calls.High) > 0 && !x.Embedded {
		calls.High, prompt.High = math.Ceil(calls.High*(1+againShare)), prompt.High*(1+againShare)
		assume("up to %.0f %% of answers are asked for once more", againShare*100)
	}
	if k.w.Config.Recipe.agentic() && kindOf(s.Stage) == KindPlan {
		steps := float64(k.w.agentSettings().Agent.MostCalls())
		calls.High, prompt.High = calls.High*steps, prompt.High*steps
		assume("%s: a search step by step takes up to %.0f calls a claim, of which the first is known; with --batch each is a round of its own", s.Stage, steps)
	}
	prompt = llm.Range{Low: prompt.Low * off.Low, High: prompt.High * off.High}
	answers := llm.Range{Low: calls.Low * answer.Low, High: calls.High * answer.High}
	s.Calls, s.Prompt, s.Answer = s.Calls.Add(calls), s.Prompt.Add(prompt), s.Answer.Add(answers)
	s.Wall += rates.Wall(calls.High, prompt.High+answers.High, latency)
	if k.w.llm.Unbilled(x.Endpoint, x.Model) {
		assume(unbilledText, x.Model)
	}
	price, ok := k.w.llm.PriceOf(x.Endpoint, x.Model, false)
	if !ok {
		if !slices.Contains(s.Unpriced, x.Model) {
			s.Unpriced = append(s.Unpriced, x.Model)
		}
		return
	}
	s.USD = s.USD.Add(costOf(price, prompt, answers))
	if batch, ok := k.w.llm.PriceOf(x.Endpoint, x.Model, true); ok {
		price = batch
	} else if price.Input+price.Output > 0 {
		assume("endpoint %s has no batch API: with --batch its calls are sent one by one, at the usual price", x.Endpoint)
	}
	s.BatchUSD = s.BatchUSD.Add(costOf(price, prompt, answers))
}

func costOf(p llm.Price, prompt, answer llm.Range) llm.Range {
	cost := func(in, out float64) float64 { return (in*p.Input + out*p.Output) / 1e6 }
	return llm.Range{Low: cost(prompt.Low, answer.Low), High: cost(prompt.High, answer.High)}
}

// Text is the forecast for people.
func (f Forecast) Text() string {
	rows := [][]string{{"stage", "items", "cached", "hits", "calls", "tokens in", "tokens out", "USD", "USD with --batch", "wall"}}
	for _, s := range append(slices.Clone(f.Stages), f.Total) {
		rows = append(rows, []string{
			s.Stage, count(s.Items), fmt.Sprint(s.Fresh), fmt.Sprint(s.Hits), count(s.Calls), count(s.Prompt), count(s.Answer),
			money(s.USD, s.Unpriced), money(s.BatchUSD, s.Unpriced), s.Wall.Round(time.Second).String(),
		})
	}
	if len(f.Stages) == 1 {
		rows = rows[:2]
	}
	var b strings.Builder
	b.WriteString("forecast of model calls:\n" + aligned(rows))
	if len(f.Total.Unpriced) > 0 {
		fmt.Fprintf(&b, "no price is known of %s; see assay import prices\n", strings.Join(f.Total.Unpriced, ", "))
	}
	if f.Total.Missing.High > 0 {
		var missing []string
		for _, s := range f.Stages {
			if s.Missing.High > 0 {
				missing = append(missing, s.Stage+" "+count(s.Missing))
			}
		}
		fmt.Fprintf(&b, "a replay asks nobody and pays nothing; answers that are not stored stay missing: %s\n", strings.Join(missing, ", "))
	}
	if f.Total.Calls.High > 0 {
		fmt.Fprintf(&b, "prices as of %s; time at the configured rates, for the upper ends\n", f.PriceDate)
	}
	for _, a := range f.Assumptions {
		fmt.Fprintf(&b, "assumed: %s\n", a)
	}
	return b.String()
}

func count(r llm.Range) string {
	low, high := fmt.Sprintf("%.0f", math.Floor(r.Low)), fmt.Sprintf("%.0f", math.Ceil(r.High))
	if low == high {
		return low
	}
	return low + "–" + high
}

func money(r llm.Range, unpriced []string) string {
	low, high := fmt.Sprintf("%.2f", r.Low), fmt.Sprintf("%.2f", r.High)
	if r.High < 1 {
		low, high = fmt.Sprintf("%.4f", r.Low), fmt.Sprintf("%.4f", r.High)
	}
	switch {
	case len(unpriced) > 0 && r.High == 0:
		return "?"
	case low == high:
		return low
	}
	return low + "–" + high
}

// aligned is a table with its first column to the left and the others to the right.
func aligned(rows [][]string) string {
	width := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			width[i] = max(width[i], len([]rune(cell)))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		for i, cell := range row {
			pad := strings.Repeat(" ", width[i]-len([]rune(cell)))
			switch i {
			case 0:
				b.WriteString(cell + pad)
			default:
				b.WriteString("  " + pad + cell)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Fact sets what a run did beside what was foreseen.
type Fact struct {
	Calls    int            `json:"calls"`
	Tokens   int            `json:"tokens"`
	USD      float64        `json:"usd"`
	Wall     time.Duration  `json:"wall_ns"`
	Stages   map[string]int `json:"stages"` // Calls by stage, without those that a batch brought
	Forecast Forecast       `json:"forecast"`
}

// Text says where a run came out in the ranges of its forecast.
func (f Fact) Text() string {
	t := f.Forecast.Total
	place := func(v float64, r llm.Range) string {
		const rounding = 1e-9
		switch {
		case v < r.Low-rounding:
			return "below"
		case v > r.High+rounding:
			return "above"
		}
		return "within"
	}
	tokens := t.Prompt.Add(t.Answer)
	text := fmt.Sprintf("forecast against fact: %d calls (%s %s), %d tokens (%s %s), $%.4f (%s %s), %s (%s foreseen)\n",
		f.Calls, place(float64(f.Calls), t.Calls), count(t.Calls), f.Tokens, place(float64(f.Tokens), tokens), count(tokens),
		f.USD, place(f.USD, t.USD), money(t.USD, t.Unpriced), f.Wall.Round(time.Second), t.Wall.Round(time.Second))
	rows := map[string]llm.Range{}
	for stage := range f.Stages {
		rows[stage] = llm.Range{}
	}
	for _, s := range f.Forecast.Stages {
		rows[s.Stage] = s.Calls
	}
	var outside []string
	whole := total(f.Stages) == f.Calls // else some came by a batch, for whichever stage
	for _, stage := range sortedKeys(rows) {
		n := f.Stages[stage]
		if at := place(float64(n), rows[stage]); at == "above" || at == "below" && whole {
			outside = append(outside, fmt.Sprintf("%s %d calls (%s %s)", stage, n, at, count(rows[stage])))
		}
	}
	if len(outside) > 0 {
		text += "outside of what was foreseen: " + strings.Join(outside, ", ") + "\n"
	} else {
		text += "every stage made as many calls as were foreseen of it\n"
	}
	return text
}
