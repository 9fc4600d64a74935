package planner

import (
	"strings"
	"testing"
)

func TestCalc(t *testing.T) {
	for expression, want := range map[string]string{
		"1,250 * 12":                   "15000",
		"0.1 + 0.2":                    "0.3",
		"1/3":                          "0.3333333333…",
		"2^10":                         "1024",
		"2^-2":                         "0.25",
		"2^3^2":                        "512",
		"-(3 - 5)":                     "2",
		"10 - 3 - 2":                   "5",
		"15% of 80":                    "12",
		"80 + 15%":                     "92",
		"80 − 15%":                     "68",
		"5% + 10%":                     "15%",
		"change from 40 to 50":         "25%",
		"percent change from 50 to 40": "-20%",
		"change from -4 to -2":         "50%",
		"12 / 48 in %":                 "25%",
		"3.5 million / 7 thousand":     "500",
		"$1.2 billion / 1,000":         "1200000",
		"26.2 mi in km":                "42.1648128 km",
		"3 in in cm":                   "7.62 cm",
		"12 inches to ft":              "1 ft",
		"90 km / 1.5 h":                "16.6666666666… m/s",
		"2 weeks in days":              "14 day",
		"1 lb in g":                    "453.59237 g",
		"1 acre in ha":                 "0.4046856422… ha",
		"(3 km + 200 m) in km":         "3.2 km",
		"100 km per 2 h":               "13.8888888888… m/s",
		"1 gal in l":                   "3.785411784 l",
		"5 m * 2 m":                    "10 m^2",
		"1 / 4 s":                      "0.25 1/s",
		"7":                            "7",
	} {
		got, err := Calc(expression)
		if err != nil || got != want {
			t.Errorf("Calc(%q) = %q, %v; want %q", expression, got, err, want)
		}
	}
}

func TestCalcRefuses(t *testing.T) {
	for expression, says := range map[string]string{
		"":                              "nothing to calculate",
		"1 / 0":                         "division by zero",
		"1 / (2 - 2)":                   "division by zero",
		"change from 0 to 4":            "from zero",
		"3 km + 2 kg":                   "different units",
		"3 km in kg":                    "cannot be given in kg",
		"2 +":                           "it ends where a number should stand",
		"(2 + 3":                        "closing bracket",
		"2 3":                           `"3" stands where the end should`,
		"1,5 + 2":                       "commas group thousands",
		"1.2.3":                         "no number",
		"sqrt(2)":                       `"sqrt" stands where a number should`,
		"os.exit(1)":                    `"os" stands where a number should`,
		"2^1000":                        "whole number of at most 64",
		"2^0.5":                         "whole number",
		"((9^64)^64)^64":                "too large",
		strings.Repeat("(", 60) + "1":   "too many brackets",
		strings.Repeat("-", 60) + "1":   "too many signs",
		strings.Repeat("1+", 200) + "1": "longer than 200",
	} {
		got, err := Calc(expression)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("Calc(%.40q) = %q, %v; want an error with %q", expression, got, err, says)
		}
	}
}

func FuzzCalc(f *testing.F) {
	for _, s := range []string{"15% of 80", "change from 40 to 50", "26.2 mi in km", "((9^64)^64)", "1,5", "3 in in", "%", "²", "2^-(3)"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := Calc(s)
		again, _ := Calc(s)
		if err == nil && (got == "" || got != again) {
			t.Errorf("Calc(%q) = %q, then %q", s, got, again)
		}
	})
}
