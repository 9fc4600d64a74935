package annotate

import (
	"context"
	"errors"

	"assay/corpus"
	"assay/llm"
)

// majority labels a pair by several samples of one annotator (methods 3.1, extensions). The label is that of
// the answer given most often; of answers given equally often, the one that came first, with a margin of 0.
// Quote, reason, flags and call are those of the first sample with that answer.
//
// A sample without an answer votes for none and counts in the margin; a pair has no label when no sample has
// one. A sample that is held ends the asking, since a person has to look at the pair.
func majority(ctx context.Context, samples int, ask func(context.Context, int) (corpus.Label, error)) (corpus.Label, error) {
	var labels []corpus.Label // one of each answer, in the order in which they came
	var failure *Failure
	var waits *llm.WaitingError // every sample is ordered, or forecast, before one is waited for
	var calls []string
	votes := map[corpus.Answer]int{}
	for sample := range samples {
		l, err := ask(ctx, sample)
		var failed *Failure
		switch {
		case errors.As(err, &waits):
			continue
		case errors.As(err, &failed):
			calls = append(calls, failed.Calls...)
			if failure == nil {
				failure = failed
			}
			continue
		case err != nil:
			return corpus.Label{}, err
		}
		calls = append(calls, l.Calls...)
		if l.Status == corpus.LabelHeld && waits == nil {
			l.Calls = calls
			return l, nil
		}
		if votes[l.Answer]++; votes[l.Answer] == 1 {
			labels = append(labels, l)
		}
	}
	if waits != nil {
		return corpus.Label{}, waits
	}
	if len(labels) == 0 {
		failure.Calls = calls
		return corpus.Label{}, failure
	}
	first, second := labels[0], 0
	for _, l := range labels[1:] {
		if votes[l.Answer] > votes[first.Answer] {
			first, second = l, votes[first.Answer]
		} else {
			second = max(second, votes[l.Answer])
		}
	}
	margin := float64(votes[first.Answer]-second) / float64(samples)
	first.Calls, first.Stability = calls, &corpus.Stability{Samples: samples, Votes: votes, Margin: margin}
	if margin < UnstableBelow {
		first.Flags = corpus.AddFlag(first.Flags, corpus.FlagUnstable)
	}
	return first, nil
}
