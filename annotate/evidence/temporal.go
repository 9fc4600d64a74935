package evidence

import (
	"time"

	"assay/corpus"
)

// Fit compares the time that a document speaks of with the claim's (methods, decision 7): the event's
// date, or without one the publication's, against the day on which the claim was made. It is within the
// claim's time if it lies at most window days away, on either side; a date that is known to the month or
// the year is within if any of its days is.
func Fit(claim, event, published string, window int) corpus.TemporalFit {
	day, _, ok := days(claim)
	if !ok {
		return corpus.FitUnknown
	}
	from, to, ok := days(event)
	if !ok {
		if from, to, ok = days(published); !ok {
			return corpus.FitUnknown
		}
	}
	around := time.Duration(window) * 24 * time.Hour
	switch {
	case to.Before(day.Add(-around)):
		return corpus.FitBefore
	case from.After(day.Add(around)):
		return corpus.FitAfter
	}
	return corpus.FitWithin
}

// days returns the first and the last day of 2006, 2006-01 or 2006-01-02; what follows a day is cut.
func days(date string) (from, to time.Time, ok bool) {
	switch len(date) {
	case len("2006"):
		from, err := time.Parse("2006", date)
		return from, from.AddDate(1, 0, -1), err == nil
	case len("2006-01"):
		from, err := time.Parse("2006-01", date)
		return from, from.AddDate(0, 1, -1), err == nil
	}
	if len(date) < len(time.DateOnly) {
		return from, to, false
	}
	from, err := time.Parse(time.DateOnly, date[:len(time.DateOnly)])
	return from, from, err == nil
}
