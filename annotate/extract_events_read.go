package annotate

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"assay/corpus"
)

// This file reads times as claims tell them: days, months, years and spans of them, and what counts from the
// day on which the claim was made.

const (
	monthNames = `January|February|March|April|May|June|July|August|September|October|November|December`
	yearDigits = `1[5-9]\d\d|20\d\d`
)

var monthOf = func() map[string]time.Month {
	m := map[string]time.Month{}
	for i, name := range strings.Split(monthNames, "|") {
		m[strings.ToLower(name)] = time.Month(i + 1)
	}
	return m
}()

// countWords are numbers that stand as words before a unit of time.
var countWords = map[string]int{"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "twenty": 20, "thirty": 30}

// whenForms are tried in this order, so that a form stands before one that is a part of it.
var whenForms = []struct {
	words *regexp.Regexp
	read  func(m []string, day time.Time) (from, to time.Time, ok bool)
	claim bool // it counts from the day of the claim
}{
	{words: regexp.MustCompile(`\b(\d{4}-\d\d-\d\d)\b`), read: func(m []string, _ time.Time) (time.Time, time.Time, bool) {
		d, err := time.Parse(time.DateOnly, m[1])
		return d, d, err == nil
	}},
	{words: regexp.MustCompile(`(?i)\b(?:(\d{1,2})(?:st|nd|rd|th)?(?: of)? )?(` + monthNames + `)(?: (\d{1,2})(?:st|nd|rd|th)?)?,? (` + yearDigits + `)\b`), read: func(m []string, _ time.Time) (time.Time, time.Time, bool) {
		first := time.Date(number(m[4]), monthOf[strings.ToLower(m[2])], 1, 0, 0, 0, 0, time.UTC)
		n := number(m[1] + m[3])
		switch {
		case m[1] != "" && m[3] != "":
			return first, first, false
		case m[1] == "" && m[3] == "":
			return first, first.AddDate(0, 1, -1), true
		}
		d := first.AddDate(0, 0, n-1)
		return d, d, n >= 1 && d.Month() == first.Month()
	}},
	{words: regexp.MustCompile(`(?i)\b(?:between|from) (` + yearDigits + `) (?:and|to|until|through) (` + yearDigits + `)\b|\b(` + yearDigits + `) ?[-–] ?(` + yearDigits + `)\b`), read: func(m []string, _ time.Time) (time.Time, time.Time, bool) {
		from, to := number(m[1]+m[3]), number(m[2]+m[4])
		return yearDay(from, 1, 1), yearDay(to, 12, 31), from <= to
	}},
	{words: regexp.MustCompile(`(?i)\b((?:1[5-9]|20)\d)0s\b`), read: func(m []string, _ time.Time) (time.Time, time.Time, bool) {
		return yearDay(number(m[1])*10, 1, 1), yearDay(number(m[1])*10+9, 12, 31), true
	}},
	{words: regexp.MustCompile(`(?i)\bsince (` + yearDigits + `)\b`), claim: true, read: func(m []string, day time.Time) (time.Time, time.Time, bool) {
		from := yearDay(number(m[1]), 1, 1)
		return from, day, !day.Before(from)
	}},
	{words: regexp.MustCompile(`\b(` + yearDigits + `)\b`), read: func(m []string, _ time.Time) (time.Time, time.Time, bool) {
		return yearDay(number(m[1]), 1, 1), yearDay(number(m[1]), 12, 31), true
	}},
	{words: regexp.MustCompile(`(?i)\b(today|now|yesterday)\b`), claim: true, read: func(m []string, day time.Time) (time.Time, time.Time, bool) {
		if strings.EqualFold(m[1], "yesterday") {
			day = day.AddDate(0, 0, -1)
		}
		return day, day, true
	}},
	{words: regexp.MustCompile(`(?i)\b(this|last) (year|month)\b`), claim: true, read: func(m []string, day time.Time) (time.Time, time.Time, bool) {
		back := 0
		if strings.EqualFold(m[1], "last") {
			back = -1
		}
		if strings.EqualFold(m[2], "year") {
			return yearDay(day.Year()+back, 1, 1), yearDay(day.Year()+back, 12, 31), true
		}
		first := time.Date(day.Year(), day.Month(), 1, 0, 0, 0, 0, time.UTC).AddDate(0, back, 0)
		return first, first.AddDate(0, 1, -1), true
	}},
	{words: regexp.MustCompile(`(?i)\b(\d{1,3}|an?|one|two|three|four|five|six|seven|eight|nine|ten|twenty|thirty) years? ago\b`), claim: true, read: func(m []string, day time.Time) (time.Time, time.Time, bool) {
		n, ok := countWords[strings.ToLower(m[1])]
		if !ok {
			n = number(m[1])
		}
		return yearDay(day.Year()-n, 1, 1), yearDay(day.Year()-n, 12, 31), n > 0
	}},
}

// whenIn finds the words of a sentence that tell a time which can be read, "" for none.
func whenIn(sentence, day string) string {
	for _, f := range whenForms {
		if at := f.words.FindString(sentence); at != "" {
			if _, _, _, ok := readWhen(at, day); ok {
				return at
			}
		}
	}
	return ""
}

// readWhen reads the first and the last day of a time. Words that count from the day of the claim say
// nothing without it.
func readWhen(when, day string) (from, to, source string, ok bool) {
	made, err := time.Parse(time.DateOnly, day)
	for _, f := range whenForms {
		m := f.words.FindStringSubmatch(when)
		if m == nil {
			continue
		}
		if f.claim && err != nil {
			return "", "", "", false
		}
		first, last, ok := f.read(m, made)
		if !ok {
			return "", "", "", false
		}
		source = corpus.TimeFromText
		if f.claim {
			source = corpus.TimeFromClaim
		}
		return first.Format(time.DateOnly), last.Format(time.DateOnly), source, true
	}
	return "", "", "", false
}

func isDay(s string) bool {
	_, err := time.Parse(time.DateOnly, s)
	return err == nil
}

func yearDay(year, month, day int) time.Time {
	return time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
}

// number reads digits that a form has matched.
func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0 // unreachable: the form matched digits, or nothing, which is not read
	}
	return n
}
