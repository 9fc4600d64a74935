package assay

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"assay/annotate"
	"assay/corpus"
	"assay/kv"
	"assay/pipeline"
)

// candidatesName is the plugin of the stage that makes claims of accepted candidates, and the queue that
// List shows.
const candidatesName = "candidates"

// A Decision is what one person decided.
type Decision = corpus.Decision

// DecisionKinds lists what can be decided, with what a yes does.
var DecisionKinds = []Entry{
	{Name: corpus.DecideAcceptClaim, Doc: "a candidate (k_...) becomes a claim of the corpus, with the verdict; the next build works on it as on any other"},
}

// VerdictNames are the words of the six-way scale.
func VerdictNames() []string {
	return names(corpus.Verdicts, func(v corpus.Verdict) string { return string(v) })
}

// Decide appends what a person decided. What is decided on has to be there, and is kept with the
// decision as the person saw it.
func (w *Workspace) Decide(d Decision) (Decision, error) {
	if !slices.ContainsFunc(DecisionKinds, func(k Entry) bool { return k.Name == d.Kind }) {
		return d, fmt.Errorf("decide: kind %q is unknown; known are %s", d.Kind, strings.Join(names(DecisionKinds, func(k Entry) string { return k.Name }), ", "))
	}
	if d.By = corpus.Space(d.By); d.By == "" {
		return d, errors.New("decide: it has to be known who decides; give a name with --by")
	}
	if v, ok := corpus.ParseVerdict(string(d.Verdict)); ok {
		d.Verdict = v
	}
	switch {
	case d.Yes && !slices.Contains(corpus.Verdicts, d.Verdict):
		return d, fmt.Errorf("decide: verdict %q is none of %s", d.Verdict, strings.Join(VerdictNames(), ", "))
	case !d.Yes && d.Verdict != "":
		return d, errors.New("decide: a no has no verdict")
	}
	c, decided, err := w.candidateByID(d.Target)
	if err != nil {
		return d, fmt.Errorf("decide: %w", err)
	}
	d.Candidate = &c
	if d.At == "" {
		d.At = time.Now().UTC().Format(time.RFC3339)
	}
	return d, w.tables.Decisions.Put(kv.Key(d.Kind, d.Target, fmt.Sprintf("%012d", len(decided))), d)
}

// Decided says what the decisions on one thing come to by now.
func (w *Workspace) Decided(kind, target string) (corpus.Resolution, error) {
	list, err := w.decisions(kind, target)
	return corpus.Resolve(list), err
}

// decisions returns what was decided about one thing, oldest first.
func (w *Workspace) decisions(kind, target string) ([]corpus.Decision, error) {
	var out []corpus.Decision
	for entry, err := range w.tables.Decisions.Scan(kv.Prefix(kind, target), "") {
		if err != nil {
			return nil, fmt.Errorf("read decisions on %s: %w", target, err)
		}
		out = append(out, entry.Value)
	}
	return out, nil
}

// decided is decisions for a stage: what it read enters its fingerprint.
func (w *Workspace) decided(ctx context.Context, kind, target string) ([]corpus.Decision, error) {
	list, err := w.decisions(kind, target)
	if err != nil {
		return nil, err
	}
	w.answered(ctx, pipeline.DecisionDep+kind+"/"+target, pipeline.SumOf(list))
	return list, nil
}

// decisionSum says what a recorded question to people answers now.
func (w *Workspace) decisionSum(key string) (pipeline.Sum, bool, error) {
	kind, target, ok := strings.Cut(strings.TrimPrefix(key, pipeline.DecisionDep), "/")
	if !ok {
		return pipeline.Sum{}, false, nil
	}
	list, err := w.decisions(kind, target)
	return pipeline.SumOf(list), err == nil, err
}

// accepted yields every candidate on which somebody decided, once each, as the last of them saw it.
func (k *walk) accepted() iter.Seq2[corpus.CandidateClaim, error] {
	return func(yield func(corpus.CandidateClaim, error) bool) {
		var seen *corpus.CandidateClaim
		emit := func() bool {
			if seen == nil {
				return true
			}
			k.e.Expect(k.stages.candidates().Name, 1)
			return yield(*seen, nil)
		}
		for entry, err := range k.w.tables.Decisions.Scan(kv.Prefix(corpus.DecideAcceptClaim), "") {
			if err != nil {
				yield(corpus.CandidateClaim{}, err)
				return
			}
			c := entry.Value.Candidate
			if c == nil {
				continue
			}
			if seen != nil && seen.ID != c.ID && !emit() {
				return
			}
			seen = c
		}
		emit()
	}
}

// candidate walks on from a candidate that people accepted, as from a claim of any page.
func (k *walk) candidate(ctx context.Context, c corpus.CandidateClaim) (struct{}, error) {
	recipe := k.w.Config.Recipe
	if !slices.ContainsFunc(recipe.Sites, func(s SiteRecipe) bool { return s.Name == c.Source }) {
		return struct{}{}, k.withhold("claim", c.ID, "its source is not in the recipe")
	}
	claims, err := pipeline.Run(ctx, k.e, k.stages.candidates(), c.ID, c)
	return struct{}{}, k.claims(ctx, corpus.Ref{Source: candidatesName, Row: c.ID}, "", claims, err)
}

// candidates makes a claim of an accepted candidate. The decisions are answers that it rests on.
func (s stages) candidates() pipeline.Stage[corpus.CandidateClaim, []corpus.Claim] {
	return pipeline.Stage[corpus.CandidateClaim, []corpus.Claim]{
		Name: KindParse + "/" + candidatesName, Version: 1,
		Do: func(ctx context.Context, c corpus.CandidateClaim) ([]corpus.Claim, error) {
			list, err := s.w.decided(ctx, corpus.DecideAcceptClaim, c.ID)
			if err != nil {
				return nil, err
			}
			r := corpus.Resolve(list)
			switch {
			case r.No:
				return nil, corpus.Exclude("rejected", r.Reason)
			case r.Disagree:
				return nil, corpus.Exclude("verdicts_disagree", r.Reason)
			case !r.Decided:
				return nil, corpus.Exclude("undecided", "nobody decided on "+c.ID)
			}
			return []corpus.Claim{c.Accepted(r.Verdict, r.Status(), r.By.At[:len(time.DateOnly)])}, nil
		},
	}
}

// eachCandidate calls visit with every stored candidate, in the order of documents, until it says false.
func (w *Workspace) eachCandidate(e *pipeline.Engine, visit func(c corpus.CandidateClaim, item shownItem) bool) error {
	for info, err := range e.Items(KindExtract) {
		if err != nil {
			return err
		}
		item, ok, err := e.Item(info.Stage, info.Key)
		if err != nil {
			return err
		}
		if !ok || item.State() != "done" {
			continue
		}
		var x annotate.Extraction
		if err := json.Unmarshal(item.Out, &x); err != nil {
			return fmt.Errorf("read %s %s: %w", info.Stage, info.Key, err)
		}
		for _, c := range x.Candidates {
			if !visit(c, shownItem{info.Stage, info.Key, item}) {
				return nil
			}
		}
	}
	return nil
}

// candidateByID returns a candidate as it is stored, or as it was when somebody decided on it, with the
// decisions.
func (w *Workspace) candidateByID(id string) (found corpus.CandidateClaim, decided []corpus.Decision, err error) {
	if decided, err = w.decisions(corpus.DecideAcceptClaim, id); err != nil {
		return found, nil, err
	}
	for _, d := range decided {
		if d.Candidate != nil {
			found = *d.Candidate
		}
	}
	err = w.eachCandidate(w.newEngine(pipeline.Options{Explain: true}), func(c corpus.CandidateClaim, _ shownItem) bool {
		if c.ID == id {
			found = c
		}
		return c.ID != id
	})
	if err == nil && found.ID == "" {
		err = fmt.Errorf("no candidate has the id %q; assay ls candidates lists them (k_...)", id)
	}
	return found, decided, err
}

// listCandidates lists the candidates with what became of them: waiting, done (accepted), excluded.
func (w *Workspace) listCandidates(q ListQuery) ([]Listed, error) {
	var out []Listed
	seen := map[string]bool{}
	add := func(c corpus.CandidateClaim) error {
		if seen[c.ID] {
			return nil
		}
		seen[c.ID] = true
		list, err := w.decisions(corpus.DecideAcceptClaim, c.ID)
		if err != nil {
			return err
		}
		l := Listed{ItemInfo: pipeline.ItemInfo{Stage: candidatesName, Key: c.ID, State: "waiting"}}
		l.Summary = strings.TrimSpace(strings.Join([]string{c.Source, c.Date, c.Speaker}, " ")) + ": " + c.Text
		switch r := corpus.Resolve(list); {
		case r.No:
			l.State, l.Reason = "excluded", "rejected"
		case r.Disagree:
			l.State, l.Reason = "waiting", "verdicts_disagree"
		case r.Decided:
			l.State, l.Reason = "done", string(r.Verdict)
		}
		if (q.State == "" || q.State == l.State) && (q.Reason == "" || q.Reason == l.Reason) && strings.Contains(c.Source+" "+c.URL, q.Source) {
			out = append(out, l)
		}
		return nil
	}
	var failed error
	err := w.eachCandidate(w.newEngine(pipeline.Options{Explain: true}), func(c corpus.CandidateClaim, _ shownItem) bool {
		failed = add(c)
		return failed == nil
	})
	if err = cmp.Or(err, failed); err != nil {
		return nil, err
	}
	for entry, err := range w.tables.Decisions.Scan(kv.Prefix(corpus.DecideAcceptClaim), "") {
		if err != nil {
			return nil, err
		}
		if c := entry.Value.Candidate; c != nil {
			if err := add(*c); err != nil {
				return nil, err
			}
		}
	}
	slices.SortFunc(out, func(a, b Listed) int { return strings.Compare(a.Key, b.Key) })
	return q.sampled(out), nil
}

// showCandidate shows a candidate with its document, the extraction that it is from and the decisions.
func (w *Workspace) showCandidate(ctx context.Context, e *pipeline.Engine, p *provenance, id string) error {
	c, decided, err := w.candidateByID(id)
	if err != nil {
		return errNotFound
	}
	p.Candidate, p.Decisions = &c, decided
	err = w.eachCandidate(e, func(other corpus.CandidateClaim, item shownItem) bool {
		if other.ID != id {
			return true
		}
		p.Items = append(p.Items, item)
		return false
	})
	if err != nil {
		return err
	}
	if rec, ok, err := w.llm.Record(c.Call); err != nil {
		return err
	} else if ok {
		p.Calls = append(p.Calls, rec)
	}
	if d, err := w.documentRead(e, c.DocumentID); err != nil {
		return err
	} else if d != nil {
		p.Document = d
		if err := w.showSources(p, d.URL); err != nil {
			return err
		}
	}
	_, err = w.items(e, p, id, stages{w}.candidates().Name)
	return err
}

// documentRead finds a document of a newsroom or an institution among the stored items.
func (w *Workspace) documentRead(e *pipeline.Engine, id string) (*corpus.Document, error) {
	for info, err := range e.Items(KindRead) {
		if err != nil {
			return nil, err
		}
		item, ok, err := e.Item(info.Stage, info.Key)
		if err != nil {
			return nil, err
		}
		if !ok || !strings.Contains(string(item.Out), id) {
			continue
		}
		var docs []corpus.Document
		if err := json.Unmarshal(item.Out, &docs); err != nil {
			return nil, fmt.Errorf("read %s %s: %w", info.Stage, info.Key, err)
		}
		for _, d := range docs {
			if d.ID == id {
				return &d, nil
			}
		}
	}
	return nil, nil
}
