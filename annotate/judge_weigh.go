package annotate

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"assay/corpus"
)

// This file weighs evidence by fixed rules. That is how the builtin model judges, and what every draft is
// held against. The figures are ours, since the source is silent: they put a primary record above what
// repeats it, the right time above the wrong one, and one source above its copies.

var (
	byRelevance   = [4]float64{0, 0.2, 0.6, 1}
	byCredibility = [4]float64{0, 0.35, 0.7, 1}
	byFit         = map[corpus.TemporalFit]float64{corpus.FitWithin: 1, corpus.FitUnknown: 0.8, corpus.FitBefore: 0.25, corpus.FitAfter: 0.25}
	byAttribution = map[corpus.Attribution]float64{corpus.AttributionPrimary: 1, corpus.AttributionNamed: 0.9, corpus.AttributionNone: 0.7, corpus.AttributionAnonymous: 0.5}
)

const (
	unverified = 0.5  // factor of words that the document does not bear out
	strongest  = 0.95 // no document proves anything alone
	leastSide  = 0.3  // a side below this is no reason
	firmSide   = 0.6  // a side from here on may decide without a qualification
	firmShare  = 0.85 // of both sides' weight, for true or false
	mostShare  = 0.65 // likewise, for mostly
)

// strength is what one document weighs, 0 to 0.95.
func strength(p Paper) float64 {
	w := byRelevance[min(max(p.Relevance, 0), 3)] * byCredibility[min(max(p.Credibility, 0), 3)] * byFit[p.Fit] * byAttribution[p.Attribution]
	if strings.Contains(p.Cautions, cautions[flagAttributionUnverified]) {
		w *= unverified
	}
	return min(w, strongest)
}

// weighing is what fixed weights make of a docket.
type weighing struct {
	verdict corpus.Verdict
	parts   []weighedPart
	any     bool // something takes a side
}

type weighedPart struct {
	verdict corpus.Verdict
	open    string // why it is unresolved, "" if it is not
}

func weigh(d Docket) (w weighing) {
	var labels []corpus.Verdict
	for _, s := range d.Statements {
		p := weighStatement(s.Exhibits, strength)
		if p.open == corpus.OpenWeak {
			timeless := func(p Paper) float64 { p.Fit = corpus.FitWithin; return strength(p) }
			if weighStatement(s.Exhibits, timeless).open == "" {
				p.open = corpus.OpenOutOfTime
			}
		}
		w.any = w.any || p.open != corpus.OpenNoEvidence
		w.parts = append(w.parts, p)
		labels = append(labels, p.verdict)
	}
	w.verdict = together(labels)
	return w
}

// weighStatement weighs both sides of one statement. A side is as strong as it is unlikely that all of its
// origins are wrong; documents of one origin stand together already.
func weighStatement(papers []Paper, weight func(Paper) float64) weighedPart {
	type side struct{ origin, stance string }
	best := map[side]float64{}
	for _, p := range papers {
		if p.Stance != corpus.Neutral {
			k := side{p.Origin, string(p.Stance)}
			best[k] = max(best[k], weight(p))
		}
	}
	if len(best) == 0 {
		return weighedPart{corpus.Uncertain, corpus.OpenNoEvidence}
	}
	wrong := map[string]float64{string(corpus.Supports): 1, string(corpus.Refutes): 1}
	for _, p := range papers { // in their order, so that the product has one value
		k := side{p.Origin, string(p.Stance)}
		if w, ok := best[k]; ok {
			wrong[k.stance] *= 1 - w
			delete(best, k)
		}
	}
	support, refute := 1-wrong[string(corpus.Supports)], 1-wrong[string(corpus.Refutes)]
	if max(support, refute) < leastSide {
		return weighedPart{corpus.Uncertain, corpus.OpenWeak}
	}
	a, b := -math.Log(1-support), -math.Log(1-refute)
	switch share := a / (a + b); {
	case share >= firmShare && support >= firmSide:
		return weighedPart{verdict: corpus.True}
	case share >= mostShare:
		return weighedPart{verdict: corpus.MostlyTrue}
	case share <= 1-firmShare && refute >= firmSide:
		return weighedPart{verdict: corpus.False}
	case share <= 1-mostShare:
		return weighedPart{verdict: corpus.MostlyFalse}
	}
	return weighedPart{corpus.Uncertain, corpus.OpenConflicting}
}

// together is what labels of subclaims add up to, by the definitions of the scale (GPE, III-A): half true
// holds both supported and refuted parts, or is supported in part alone; more than half of it open is
// uncertain.
func together(labels []corpus.Verdict) corpus.Verdict {
	if len(labels) == 0 {
		return corpus.Uncertain
	}
	count := map[corpus.Verdict]float64{}
	for _, l := range labels {
		count[l]++
	}
	n := float64(len(labels))
	if count[labels[0]] == n {
		return labels[0]
	}
	supported := (count[corpus.True] + count[corpus.MostlyTrue]) / n
	refuted := (count[corpus.False] + count[corpus.MostlyFalse]) / n
	half, open := count[corpus.HalfTrue]/n, count[corpus.Uncertain]/n
	switch {
	case open > 0.5:
		return corpus.Uncertain
	case supported == 1, supported >= 0.75:
		return corpus.MostlyTrue
	case refuted == 1, refuted >= 0.75:
		return corpus.MostlyFalse
	case supported > 0 || half > 0:
		return corpus.HalfTrue
	}
	return corpus.MostlyFalse // refuted in part, and nothing speaks for the rest
}

// builtinJudge answers as the weights say, and names what it went by.
func builtinJudge(vars any) (json.RawMessage, error) {
	d, ok := vars.(Docket)
	if !ok {
		return nil, fmt.Errorf("judge: variables are %T", vars)
	}
	w := weigh(d)
	reply := judgeReply{Evidence: []string{}, Subclaims: []judgePart{}, Label: string(w.verdict)}
	var reasons, doubts []string
	cited := map[string]bool{}
	for i, s := range d.Statements {
		p := w.parts[i]
		reply.Subclaims = append(reply.Subclaims, judgePart{ID: s.ID, Label: string(p.verdict)})
		if p.open != "" {
			doubts = append(doubts, s.ID+": "+openWords[p.open]+".")
		} else if s.Origins == 1 {
			doubts = append(doubts, s.ID+": it rests on one origin.")
		}
		said := false
		for _, stance := range []corpus.Stance{corpus.Supports, corpus.Refutes} {
			if e, ok := heaviest(s.Exhibits, stance); ok {
				said = true
				reasons = append(reasons, fmt.Sprintf("%s: [%s] (%s, credibility %d, attribution %s) %s it.", s.ID, e.ID, e.Class, e.Credibility, e.Attribution, stance))
				if !cited[e.ID] {
					cited[e.ID] = true
					reply.Evidence = append(reply.Evidence, e.ID)
				}
			}
		}
		if !said {
			reasons = append(reasons, s.ID+": "+openWords[corpus.OpenNoEvidence]+".")
		}
	}
	if d.Unread > 0 {
		doubts = append(doubts, fmt.Sprintf("%d documents could not be read.", d.Unread))
	}
	reply.Rationale = "By weight of stance, source, time, attribution and origin. " + strings.Join(reasons, " ")
	reply.Uncertainty = strings.Join(doubts, " ")
	return json.Marshal(reply)
}

// heaviest is the document of a side that weighs most; of equals the first.
func heaviest(papers []Paper, side corpus.Stance) (out Paper, ok bool) {
	most := -1.0
	for _, p := range papers {
		if w := strength(p); p.Stance == side && w > most {
			out, ok, most = p, true, w
		}
	}
	return out, ok
}
