package assay

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"assay/annotate"
	"assay/corpus"
	"assay/pipeline"
)

// A labelled pair as a panel and the shuffled control read it. Both are drawn from all labelled pairs, so they
// come after the labels, and wait for them: drawn from some, they would ask about others tomorrow.
type labelled struct {
	Input  annotate.Input `json:"input"`
	Label  corpus.Label   `json:"label"`
	Binary string         `json:"binary"`
}

// Outcome of a pair that was asked about: outcomeLabelled, outcomeHeld, the reason of an annotate.Failure, the
// reason of an exclusion, or outcomeFailed.
const (
	outcomeLabelled = "labelled"
	outcomeHeld     = "held"
	outcomeFailed   = "failed" // the endpoint gave no reply
)

// An askedPair is a pair with what came of asking the annotator of the corpus.
type askedPair struct {
	claim   corpus.Claim
	binary  string
	doc     corpus.Document
	ev      evidence
	label   corpus.Label // without a label unless outcome is outcomeLabelled or outcomeHeld
	outcome string
}

// A panelled pair is a pair with what the annotators of the panel made of it, that of the corpus first.
type panelled struct {
	pair        labelled
	annotations []corpus.Annotation
	consensus   corpus.StanceLabel // "" where the recipe's rule finds none
}

// disputed reports whether a person should look: the annotators come to no label, or to another one.
func (p panelled) disputed() bool { return p.consensus != p.pair.Label.Label }

// A controlled pair is a claim with a document of another claim.
type controlled struct {
	pair    annotate.Input
	binary  string
	label   corpus.Label
	outcome string
}

// needsLabels reports whether something is drawn from the labelled pairs of this walk.
func (k *walk) needsLabels() bool {
	l := k.w.Config.Recipe.Label
	return len(l.Panel.Annotators) > 0 && k.reaches(KindPanel) || l.Shuffled > 0 && k.reaches(KindControl)
}

// openLabelled makes room for the labelled pairs, where something is drawn from them.
func (k *walk) openLabelled() (err error) {
	if k.needsLabels() {
		k.labelled, err = newSpool[labelled](filepath.Join(k.w.Dir, stateDir))
	}
	return err
}

// came notes what became of the label of a pair. It says false where there is nothing to go on with.
func (k *walk) came(ctx context.Context, a askedPair, in annotate.Input, err error) (ok bool, _ error) {
	below, ok, end := k.settled(ctx, "pair", err)
	if end != nil {
		return false, end
	}
	outcome, known, err := k.outcome(a.label, err)
	if err != nil {
		return false, err
	}
	if !known && below == ctx {
		k.missing.Add(1)
	}
	if known && k.visit.asked != nil {
		a.outcome = outcome
		if err := k.visit.asked(a); err != nil {
			return false, err
		}
	}
	if ok && k.labelled != nil && a.label.Status == corpus.LabelDone {
		return true, k.labelled.add(a.label.ID, "", labelled{in, a.label, a.binary})
	}
	return ok, nil
}

// outcome tells in a word what came of asking about a pair; known is false for one that was not asked yet, or
// whose answer is not there.
func (k *walk) outcome(l corpus.Label, err error) (outcome string, known bool, _ error) {
	var item *pipeline.ItemError
	var blocked *pipeline.BlockedError
	var fail *pipeline.Failure
	switch {
	case err == nil && l.Status == corpus.LabelHeld:
		return outcomeHeld, true, nil
	case err == nil:
		return outcomeLabelled, true, nil
	case errors.As(err, &item) && item.Excl != nil:
		return item.Excl.Reason, true, nil
	case errors.As(err, &item):
		fail = item.Fail
	case errors.As(err, &blocked) && blocked.Reason == pipeline.FailedBefore:
		stored, _, err := k.e.Item(blocked.Stage, blocked.Key)
		if err != nil {
			return "", false, err
		}
		fail = stored.Fail
	}
	if fail == nil || fail.Class == pipeline.ClassWaiting {
		return "", false, nil
	}
	return cmp.Or(fail.Code, outcomeFailed), true, nil
}

// afterLabels asks the panel and the control.
func (k *walk) afterLabels(ctx context.Context) error {
	if k.labelled == nil {
		return nil
	}
	k.drawable = k.labelled.len()
	if n := k.missing.Load(); n > 0 {
		return k.withhold("panel and control", "labels", fmt.Sprintf("drawn once all labels are there; %d are not", n))
	}
	if err := k.panel(ctx); err != nil {
		return err
	}
	return k.control(ctx)
}

// panel has the other annotators label pairs, drawn by label and verdict.
func (k *walk) panel(ctx context.Context) error {
	recipe := k.w.Config.Recipe.Label
	if len(recipe.Panel.Annotators) == 0 || !k.reaches(KindPanel) {
		return nil
	}
	var all []stratum
	for p, err := range k.labelled.sorted() {
		if err != nil {
			return err
		}
		all = append(all, stratum{p.Label.ID, string(p.Label.Label) + " " + p.Binary})
	}
	chosen := stratified(all, recipe.Panel.Pairs, recipe.Seed)
	for _, role := range recipe.Panel.Annotators {
		k.e.Expect(k.stages.panel(role).Name, len(chosen))
	}
	for _, err := range pipeline.Each(ctx, k.w.workers(), values(chosen), func(ctx context.Context, id string) (struct{}, error) {
		pair, err := k.labelled.get(id)
		if err != nil {
			return struct{}{}, err
		}
		return struct{}{}, k.askPanel(ctx, pair)
	}) {
		if err != nil {
			return err
		}
	}
	return nil
}

// askPanel has every annotator of the panel label one pair.
func (k *walk) askPanel(ctx context.Context, pair labelled) error {
	recipe := k.w.Config.Recipe
	p := panelled{pair: pair, annotations: []corpus.Annotation{annotation(roleAnnotate, recipe, pair.Label, outcomeLabelled)}}
	complete := true
	for _, role := range recipe.Label.Panel.Annotators {
		in := pair.Input
		in.Zero = corpus.AnswerUnknown
		ctx := ctx
		if recipe.Label.ZeroContext {
			stage := k.stages.panelZero(role)
			z, err := pipeline.Run(ctx, k.e, stage, in.Claim.ID, in.Claim)
			below, ok, err := k.settled(ctx, "zero-context answer", err)
			if err != nil {
				return err
			}
			ctx = pipeline.Beside(ctx, below)
			if ok {
				in.Zero = z.Answer
				if err := k.cite(append(z.Calls, z.Call)...); err != nil {
					return err
				}
			}
		}
		l, err := pipeline.Run(ctx, k.e, k.stages.panel(role), pair.Label.ID, in)
		_, ok, end := k.settled(ctx, "panel answer", err)
		if end != nil {
			return end
		}
		outcome, known, err := k.outcome(l, err)
		if err != nil {
			return err
		}
		complete = complete && (ok || known)
		if !ok {
			l = corpus.Label{}
		} else if outcome == "" {
			outcome = outcomeLabelled // with its last output, see walk.below
		}
		if err := k.cite(append(l.Calls, l.Call)...); err != nil {
			return err
		}
		p.annotations = append(p.annotations, annotation(role, recipe, l, outcome))
	}
	if !complete || k.visit.panel == nil {
		return nil
	}
	p.consensus = consensus(recipe.Label.Panel.Consensus, p.annotations)
	return k.visit.panel(p)
}

// roleAnnotate is the role of the annotator whose label a pair has.
const roleAnnotate = "annotate"

func annotation(role string, r Recipe, l corpus.Label, outcome string) corpus.Annotation {
	a := corpus.Annotation{Annotator: role, Model: r.Models[role].Model, Outcome: outcome}
	if outcome == outcomeLabelled {
		a.Label, a.Answer, a.Zero, a.Effect, a.Call = l.Label, l.Answer, l.Zero, l.Effect, l.Call
	}
	return a
}

// consensus is the label that a panel comes to by a rule, "" for none. An annotator without a label agrees with
// nobody.
func consensus(rule string, list []corpus.Annotation) corpus.StanceLabel {
	votes := map[corpus.StanceLabel]int{}
	for _, a := range list {
		if a.Label != "" {
			votes[a.Label]++
		}
	}
	for label, n := range votes {
		if n == len(list) || rule == ConsensusMajority && 2*n > len(list) {
			return label
		}
	}
	return ""
}

// control asks about claims with documents of other claims, which can have nothing to say about them.
func (k *walk) control(ctx context.Context) error {
	recipe := k.w.Config.Recipe.Label
	if recipe.Shuffled == 0 || !k.reaches(KindControl) {
		return nil
	}
	deck := newShuffle(recipe.Seed)
	for p, err := range k.labelled.sorted() {
		if err != nil {
			return err
		}
		deck.add(p.Label.ID, p.Input.Claim.ID, p.Input.Claim.Text, p.Input.Document.ID)
	}
	stage := k.stages.control()
	dealt := deck.deal(recipe.Shuffled)
	k.e.Expect(stage.Name, len(dealt))
	for _, err := range pipeline.Each(ctx, k.w.workers(), values(dealt), func(ctx context.Context, d hand) (struct{}, error) {
		claim, err := k.labelled.get(d.claimPair)
		if err != nil {
			return struct{}{}, err
		}
		other, err := k.labelled.get(d.documentPair)
		if err != nil {
			return struct{}{}, err
		}
		in := claim.Input
		in.Document = other.Input.Document
		l, err := pipeline.Run(ctx, k.e, stage, corpus.PairID(in.Claim.ID, in.Document.ID), in)
		_, ok, end := k.settled(ctx, "control", err)
		if end != nil {
			return struct{}{}, end
		}
		outcome, known, err := k.outcome(l, err)
		if err != nil {
			return struct{}{}, err
		}
		if !ok && !known {
			return struct{}{}, nil
		}
		if !ok {
			l = corpus.Label{}
		} else if outcome == "" {
			outcome = outcomeLabelled
		}
		if err := k.cite(append(l.Calls, l.Call)...); err != nil {
			return struct{}{}, err
		}
		if k.visit.control == nil {
			return struct{}{}, nil
		}
		return struct{}{}, k.visit.control(controlled{in, claim.Binary, l, outcome})
	}) {
		if err != nil {
			return err
		}
	}
	return nil
}

// cite tells of calls that something rests on.
func (k *walk) cite(calls ...string) error {
	if k.visit.calls == nil {
		return nil
	}
	return k.visit.calls(calls...)
}

func values[T any](list []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, v := range list {
			if !yield(v, nil) {
				return
			}
		}
	}
}

// panel is named by the annotator, and so is the question that it is asked without a document.
func (s stages) panel(role string) pipeline.Stage[annotate.Input, corpus.Label] {
	settings := s.w.panelSettings(role)
	stage := s.label()
	stage.Name, stage.Recipe = KindPanel+"/"+role, settings
	stage.Do = s.annotate(settings)
	return stage
}

func (s stages) panelZero(role string) pipeline.Stage[corpus.Claim, annotate.Zero] {
	settings := s.w.withoutDocument(s.w.panelSettings(role))
	stage := s.zero()
	stage.Name, stage.Recipe = KindPanel+"/"+role+"/"+KindZero, settings
	p := s.w.protocol()
	stage.Do = func(ctx context.Context, c corpus.Claim) (annotate.Zero, error) {
		return p.Zero(ctx, s.w.llm, settings, c)
	}
	return stage
}

func (s stages) control() pipeline.Stage[annotate.Input, corpus.Label] {
	settings := s.w.labelSettings()
	settings.Role = KindControl
	stage := s.label()
	stage.Name, stage.Recipe = KindControl+"/shuffled", settings
	stage.Do = s.annotate(settings)
	return stage
}

// panelSettings asks an annotator of the panel as that of the corpus is asked, but once.
func (w *Workspace) panelSettings(role string) annotate.Settings {
	s := w.roleSettings(role)
	s.Role, s.Samples = KindPanel+":"+role, 0
	s.PromptHash = w.promptHash(w.protocol().Prompt(s).Name)
	return s
}

// usualPanel is the panel of a profile.
func usualPanel(profile string) (PanelRecipe, error) {
	text, err := profileYAML(profile)
	if err != nil {
		return PanelRecipe{}, err // which the profile's own check tells of
	}
	var c Config
	err = yaml.Unmarshal(text, &c)
	return c.Recipe.Label.Panel, err
}

// checkPanel refuses a panel that nobody sits in. A recipe that names every setting, as the one of a release does, may
// say of it what the profile says.
func (c *Config) checkPanel(said func(key string) bool, bad func(key, format string, args ...any), oneOf func(key, value string, known ...string)) {
	p := c.Recipe.Label.Panel
	oneOf("recipe.label.panel.consensus", p.Consensus, ConsensusMajority, ConsensusUnanimous)
	if usual, err := usualPanel(c.Recipe.Profile); err == nil && len(p.Annotators) == 0 {
		named := said("recipe.label.panel.annotators")
		for _, s := range []struct {
			key   string
			usual bool
		}{{"recipe.label.panel.pairs", p.Pairs == usual.Pairs}, {"recipe.label.panel.consensus", p.Consensus == usual.Consensus}} {
			if said(s.key) && !(named && s.usual) {
				bad(s.key, "there is no panel without annotators: name roles of recipe.models under recipe.label.panel.annotators, or leave this out")
			}
		}
	}
	for i, role := range p.Annotators {
		switch _, ok := c.Recipe.Models[role]; {
		case role == roleAnnotate:
			bad("recipe.label.panel.annotators", "the annotator of the corpus is in every panel; name the others")
		case slices.Contains(p.Annotators[:i], role):
			bad("recipe.label.panel.annotators", "%q stands twice", role)
		case !ok:
			bad("recipe.label.panel.annotators", "%q is no role of recipe.models; describe it there: %s: {endpoint: ..., model: ...}", role, role)
		case strings.Contains(role, "/"):
			bad("recipe.label.panel.annotators", "%q cannot hold a slash", role)
		case reflect.DeepEqual(c.Recipe.role(role), c.Recipe.role(roleAnnotate)):
			bad("recipe.label.panel.annotators", "%q asks the annotator's model in the same words and with the same parameters: it would agree with itself; name another model", role)
		}
	}
}

// stratum is a pair with the stratum that it is of.
type stratum struct{ id, of string }

// stratified draws n items, from each stratum its share to the nearest item and one at least where there is
// room; n of 0 draws all. What is drawn of a stratum are the items with the smallest hashes under the seed, so
// that a corpus that grows keeps most of its sample.
func stratified(all []stratum, n int, seed uint64) []string {
	byStratum := map[string][]string{}
	for _, s := range all {
		byStratum[s.of] = append(byStratum[s.of], s.id)
	}
	if n <= 0 || n > len(all) {
		n = len(all)
	}
	keys := sortedKeys(byStratum)
	quota, left := map[string]int{}, n
	for _, k := range keys {
		quota[k] = n * len(byStratum[k]) / max(len(all), 1)
		left -= quota[k]
	}
	slices.SortStableFunc(keys, func(a, b string) int { // the largest remainder first, an empty stratum before all
		rest := func(k string) int { return n * len(byStratum[k]) % len(all) }
		none := func(k string) int { return min(quota[k], 1) }
		return cmp.Or(none(a)-none(b), rest(b)-rest(a))
	})
	for _, k := range keys[:left] {
		quota[k]++
	}
	var out []string
	for _, k := range sortedKeys(byStratum) {
		ids := byStratum[k]
		slices.SortFunc(ids, func(a, b string) int {
			return cmp.Or(cmp.Compare(drawHash(seed, a), drawHash(seed, b)), strings.Compare(a, b))
		})
		out = append(out, ids[:quota[k]]...)
	}
	slices.Sort(out)
	return out
}

// drawHash is the place of an item in the order of a draw.
func drawHash(seed uint64, id string) uint64 {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64([]byte(id), seed))
	return binary.BigEndian.Uint64(sum[:])
}

// shuffle deals documents to claims that they were not found for.
type shuffle struct {
	seed      uint64
	claims    []shuffled          // each with one of its pairs
	documents []shuffled          // likewise
	own       map[string][]string // wording => documents found for a claim so worded
	seen      map[string]bool
}

type shuffled struct {
	id, pair, text string
	hash           uint64
}

// A hand names a pair that has the claim, and one that has the document.
type hand struct{ claimPair, documentPair string }

func newShuffle(seed uint64) *shuffle {
	return &shuffle{seed: seed, own: map[string][]string{}, seen: map[string]bool{}}
}

// add takes a pair; pairs come in order of their ids.
func (s *shuffle) add(pair, claim, text, document string) {
	once := func(id, text string, to *[]shuffled) {
		if !s.seen[id] {
			s.seen[id] = true
			*to = append(*to, shuffled{id, pair, text, drawHash(s.seed, id)})
		}
	}
	once(claim, text, &s.claims)
	once(document, "", &s.documents)
	s.own[text] = append(s.own[text], document)
}

// deal gives n claims a document each; where there are fewer claims, they get more than one. Claims come in the
// order of their hashes, and a claim's documents in the order of the two hashes mixed.
func (s *shuffle) deal(n int) (out []hand) {
	slices.SortFunc(s.claims, func(a, b shuffled) int { return cmp.Or(cmp.Compare(a.hash, b.hash), strings.Compare(a.id, b.id)) })
	hands := make([][]string, min(n, len(s.claims)))
	rounds := (n + len(s.claims) - 1) / max(len(s.claims), 1)
	for i := range hands {
		hands[i] = s.cards(s.claims[i], rounds)
	}
	for round := range rounds {
		for i, cards := range hands {
			if len(out) < n && round < len(cards) {
				out = append(out, hand{s.claims[i].pair, cards[round]})
			}
		}
	}
	return out
}

// cards are the first documents of a claim: pairs that have them.
func (s *shuffle) cards(claim shuffled, rounds int) (pairs []string) {
	type card struct {
		at   uint64
		pair string
	}
	var best []card // sorted, rounds at most
	for _, d := range s.documents {
		c := card{mix(claim.hash ^ d.hash), d.pair}
		if len(best) == rounds && c.at >= best[rounds-1].at || slices.Contains(s.own[claim.text], d.id) {
			continue
		}
		i, _ := slices.BinarySearchFunc(best, c, func(a, b card) int { return cmp.Or(cmp.Compare(a.at, b.at), strings.Compare(a.pair, b.pair)) })
		best = slices.Insert(best, i, c)
		best = best[:min(len(best), rounds)]
	}
	for _, c := range best {
		pairs = append(pairs, c.pair)
	}
	return pairs
}

// mix is the finaliser of SplitMix64 (Steele, Lea, Flood 2014).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// disputes lists the pairs of the panel that a person should look at.
func (w *Workspace) disputes(ctx context.Context, q ListQuery) (out []Listed, _ error) {
	if len(w.Config.Recipe.Label.Panel.Annotators) == 0 {
		return nil, fmt.Errorf("the recipe has no panel; name its annotators under recipe.label.panel.annotators in %s", ConfigName)
	}
	var mu sync.Mutex
	k := &walk{w: w, e: w.newEngine(pipeline.Options{Explain: true}), until: KindPanel, below: true, explain: true, stages: stages{w}, visit: visitor{
		panel: func(p panelled) error {
			if !p.disputed() || q.Label != "" && q.Label != string(p.pair.Label.Label) {
				return nil
			}
			reason := "no consensus"
			if p.consensus != "" {
				reason = "consensus " + string(p.consensus)
			}
			if q.Reason != "" && q.Reason != reason || q.Source != "" && !strings.Contains(p.pair.Input.Document.ID, q.Source) {
				return nil
			}
			var said []string
			for _, a := range p.annotations {
				said = append(said, a.Annotator+" "+cmp.Or(string(a.Label), a.Outcome))
			}
			mu.Lock()
			defer mu.Unlock()
			out = append(out, Listed{
				ItemInfo: pipeline.ItemInfo{Stage: listDisputes, Key: p.pair.Label.ID, State: "waiting", Reason: reason},
				Summary:  strings.Join(said, ", ") + ": " + p.pair.Input.Document.ID + " on: " + p.pair.Input.Claim.Text,
			})
			return nil
		},
	}}
	if err := k.run(ctx); err != nil {
		return nil, err
	}
	slices.SortFunc(out, func(a, b Listed) int { return strings.Compare(a.Key, b.Key) })
	return q.sampled(out), nil
}

const listDisputes = "disputes"
