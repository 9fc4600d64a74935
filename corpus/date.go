package corpus

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// How far a date is known.
const (
	PrecisionInstant = "instant" // Value is RFC 3339 in UTC, whole seconds
	PrecisionDay     = "day"     // Value is 2006-01-02, the calendar day that the source prints
)

// Forms of dates, the first part of Date.Method. Where a clock time is printed, the second part says
// where its zone is from: offset, name, assumed (DateForm.Zone), none, or unknown.
const (
	FormISO     = "iso"     // 2025-06-03, 2025-06-03T21:30:00-04:00, 2025-06-03 21:30
	FormCompact = "compact" // 20250603, 20250603T213000Z
	FormMail    = "mail"    // Tue, 03 Jun 2025 21:30:00 EDT; 28 November 2018
	FormWords   = "words"   // June 3rd, 2025; Nov. 20, 2019, 9:28 AM EST
	FormCtime   = "ctime"   // Mon Dec 29 20:57:54 UTC 2014
	FormNumeric = "numeric" // 25-08-2020
	FormUnix    = "unix"    // 1749000600
)

// A Date is a date as a source prints it, with what is known of it. A time in an unknown zone is a
// day: no instant is made up.
type Date struct {
	Value       string `json:"value"` // by Precision
	Precision   string `json:"precision"`
	Method      string `json:"method"`                // e.g. "mail:name": form and origin of the zone
	ZoneUnknown bool   `json:"zone_unknown,omitzero"` // a clock time is printed, its zone is not known
	Day         string `json:"day"`                   // the calendar day as printed, in the source's own zone
}

// A DateForm tells what a date cannot tell of itself. The zero value reads what is unambiguous.
type DateForm struct {
	Unix       time.Duration // what a bare number counts since 1970: time.Second, time.Millisecond; 0: it is no such count
	DayFirst   bool          // 03-04-2020 is in April
	MonthFirst bool          // 03-04-2020 is in March
	Zone       string        // of clock times that are printed without one: a name of the table, or +08:00
}

// A DateError says why a string is no date.
type DateError struct {
	Printed string // cut to a readable length
	Reason  string
}

func (e *DateError) Error() string { return fmt.Sprintf("read date %q: %s", e.Printed, e.Reason) }

// ReadDate reads a date in any form that needs no hint.
func ReadDate(printed string) (Date, error) { return DateForm{}.Read(printed) }

// Read reads a date. It is a function of the string and the form alone: zone names are looked up in
// the table below and never in the machine's zone data, whose answer differs from machine to machine
// and, for names that it lacks, is a false UTC. The error is a *DateError.
func (f DateForm) Read(printed string) (Date, error) {
	s := Space(Wording(printed))
	fail := func(reason string) (Date, error) {
		if r := []rune(s); len(r) > 60 {
			s = string(r[:60]) + "…"
		}
		return Date{}, &DateError{Printed: s, Reason: reason}
	}
	if s == "" {
		return fail("nothing is printed")
	}
	if len(s) > longestDate {
		return fail("too long for a date")
	}
	if f.Unix > 0 && unixNumber.MatchString(s) {
		d, reason := readUnix(s, f.Unix)
		if reason != "" {
			return fail(reason)
		}
		return d, nil
	}
	p, form, reason := f.split(strings.ReplaceAll(s, "\u2212", "-"))
	if reason != "" {
		return fail(reason)
	}
	d, reason := f.date(p, form)
	if reason != "" {
		return fail(reason)
	}
	return d, nil
}

// longestDate is in bytes: "Wed Nov 20 2019 09:28:00 GMT+0000 (Coordinated Universal Time)" and some.
const longestDate = 120

// Years outside these are the zero value of a program or a slip of the keyboard.
const (
	firstYear = 1000
	lastYear  = 2199
)

// parts are the pieces of a printed date, as printed.
type parts struct {
	year, month, day     string // month is a number or a name
	hour, minute, second string // "" without a clock time
	half                 string // a or p, of am and pm
	zone                 string
}

const (
	clockPart = `(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,]\d{1,9})?)?(?: ?(?P<half>[AaPp])\.?[Mm]\b\.?)?`
	zonePart  = `(?: ?(?P<zone>\S.*))?`
	dayWord   = `(?P<day>\d{1,2})(?:st|nd|rd|th|er|\.|º|ª)?`
	nameWord  = `(?:(?P<weekday>\p{L}[\p{L}-]*)\.?,? )?`
	monthWord = `(?P<month>\p{L}{3,})\.?`
)

// dateForms are tried in this order; no string fits two of them.
var dateForms = []struct {
	name string
	re   *regexp.Regexp
}{
	{FormISO, regexp.MustCompile(`^(?P<year>\d{4})(?P<mark>[-/.])(?P<month>\d{1,2})(?P<again>[-/.])(?P<day>\d{1,2})(?:(?:[Tt]|,? )` + clockPart + zonePart + `)?$`)},
	{FormCompact, regexp.MustCompile(`^(?P<year>\d{4})(?P<month>\d{2})(?P<day>\d{2})(?:T?(?P<hour>\d{2})(?P<minute>\d{2})(?P<second>\d{2})?(?:\.\d{1,9})?` + zonePart + `)?$`)},
	{FormMail, regexp.MustCompile(`^` + nameWord + dayWord + `(?: |-)(?:(?:de|of) )?` + monthWord + `(?: |-|, )(?:(?:de|of) )?(?P<year>\d{4}|\d{2})(?:,? (?:at )?` + clockPart + zonePart + `)?$`)},
	{FormWords, regexp.MustCompile(`^` + nameWord + monthWord + ` ` + dayWord + `,? (?P<year>\d{4})(?:,? (?:at )?` + clockPart + zonePart + `)?$`)},
	{FormCtime, regexp.MustCompile(`^` + nameWord + monthWord + ` ` + dayWord + ` ` + clockPart + `(?: (?P<zone>\S+))? (?P<year>\d{4})$`)},
	{FormNumeric, regexp.MustCompile(`^(?P<first>\d{1,2})(?P<mark>[-/.])(?P<last>\d{1,2})(?P<again>[-/.])(?P<year>\d{4})(?:,? ` + clockPart + zonePart + `)?$`)},
}

// split takes a printed date apart.
func (f DateForm) split(s string) (p parts, form, reason string) {
	reason = "no known form"
	for _, try := range dateForms {
		m := try.re.FindStringSubmatch(s)
		if m == nil {
			continue
		}
		get := func(name string) string {
			if i := try.re.SubexpIndex(name); i >= 0 {
				return m[i]
			}
			return ""
		}
		if w := get("weekday"); w != "" && !weekdays[strings.ToLower(w)] {
			reason = fmt.Sprintf("%q is no weekday", w)
			continue
		}
		if get("mark") != get("again") {
			continue
		}
		p := parts{
			year: get("year"), month: get("month"), day: get("day"),
			hour: get("hour"), minute: get("minute"), second: get("second"), half: strings.ToLower(get("half")), zone: get("zone"),
		}
		if try.name == FormNumeric {
			if p.day, p.month = f.order(get("first"), get("last"), get("mark")); p.day == "" {
				return parts{}, "", "day and month may be either way round"
			}
		}
		if len(p.year) == 2 {
			if p.hour == "" {
				return parts{}, "", "the year has two digits"
			}
			p.year = fullYear(p.year)
		}
		return p, try.name, ""
	}
	return parts{}, "", reason
}

// order tells which of two numbers is the day; "" where nothing tells. Dots are written between day
// and month only by those who write the day first.
func (f DateForm) order(first, last, mark string) (day, month string) {
	switch a, b := number(first), number(last); {
	case a > 12 && b <= 12, a == b:
		return first, last
	case b > 12 && a <= 12:
		return last, first
	case f.DayFirst, mark == "." && !f.MonthFirst:
		return first, last
	case f.MonthFirst:
		return last, first
	}
	return "", ""
}

// fullYear reads a year of two digits as RFC 2822, section 4.3, does.
func fullYear(two string) string {
	if two < "50" {
		return "20" + two
	}
	return "19" + two
}

// date makes a Date of its parts, or says what about them is impossible.
func (f DateForm) date(p parts, form string) (d Date, reason string) {
	year, day := number(p.year), number(p.day)
	month := number(p.month)
	if month < 0 {
		var ok bool
		if month, ok = months[strings.TrimSuffix(strings.ToLower(p.month), ".")]; !ok {
			return Date{}, fmt.Sprintf("%q is no month", p.month)
		}
	}
	midnight := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	switch {
	case year < firstYear || year > lastYear:
		return Date{}, fmt.Sprintf("year %s is not plausible", p.year)
	case month < 1 || month > 12:
		return Date{}, fmt.Sprintf("month %s does not exist", p.month)
	case day < 1 || midnight.Day() != day:
		return Date{}, fmt.Sprintf("day %s does not exist in %s %d", p.day, time.Month(month), year)
	}
	d = Date{Precision: PrecisionDay, Method: form, Day: midnight.Format(time.DateOnly)}
	d.Value = d.Day
	if p.hour == "" {
		return d, ""
	}
	since, reason := clock(p)
	if reason != "" {
		return Date{}, reason
	}
	minutes, origin := readZone(p.zone)
	if origin == zoneNone && f.Zone != "" {
		if minutes, origin = readZone(f.Zone); origin != zoneName && origin != zoneOffset {
			return Date{}, fmt.Sprintf("zone %q, which times without one are to be read in, is unknown", f.Zone)
		}
		origin = zoneAssumed
	}
	d.Method += ":" + origin
	switch origin {
	case zoneNotOne:
		return Date{}, fmt.Sprintf("%q follows the time", p.zone)
	case zoneNone, zoneUnknown:
		d.ZoneUnknown = true
		return d, ""
	}
	d.Precision = PrecisionInstant
	d.Value = midnight.Add(since - time.Duration(minutes)*time.Minute).Format(time.RFC3339)
	return d, ""
}

// clock returns the time since midnight. A leap second is the second after it.
func clock(p parts) (since time.Duration, reason string) {
	hour, minute, second := number(p.hour), number(p.minute), max(number(p.second), 0)
	switch {
	case p.half != "" && (hour < 1 || hour > 12):
		return 0, fmt.Sprintf("hour %s of half a day does not exist", p.hour)
	case p.half != "":
		hour %= 12
		if p.half == "p" {
			hour += 12
		}
	}
	if hour > 23 || minute > 59 || second > 60 {
		return 0, fmt.Sprintf("time %s:%s:%02d does not exist", p.hour, p.minute, second)
	}
	return time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute + time.Duration(second)*time.Second, ""
}

// number reads a few ASCII digits, -1 for what is none.
func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// Where the zone of a clock time is from.
const (
	zoneOffset  = "offset"
	zoneName    = "name"
	zoneAssumed = "assumed"
	zoneNone    = "none"
	zoneUnknown = "unknown"
	zoneNotOne  = "" // what stands after the time is no zone at all
)

var (
	zoneNumber = regexp.MustCompile(`^(?:GMT|UTC|UT)? ?([+-])(\d{2}):?(\d{2})$`)
	zoneShort  = regexp.MustCompile(`^(?:GMT|UTC|UT) ?([+-])(\d{1,2})$|^([+-])(\d{2})$`)
	zoneRemark = regexp.MustCompile(` ?\([^()]*\)$`) // "GMT+0000 (Coordinated Universal Time)"
	zoneWord   = regexp.MustCompile(`^[A-Za-z]{1,6}$|^[A-Za-z_]+/[A-Za-z0-9_/+-]+$|^(?:[A-Za-z]+ ){1,3}[Tt]ime$|^(?:GMT|UTC|UT)? ?[+-][0-9:]{1,6}$`)
)

// readZone returns the minutes east of Greenwich. An offset wins over a remark in brackets.
func readZone(s string) (minutes int, origin string) {
	if s = strings.TrimSpace(s); s == "" {
		return 0, zoneNone
	}
	if bare := zoneRemark.ReplaceAllString(s, ""); bare != "" {
		s = bare
	} else {
		s = strings.Trim(s, "()") // "15:04 (EDT)"
	}
	name := strings.ToUpper(s)
	if minutes, ok := zones[name]; ok {
		return minutes, zoneName
	}
	sign, hours, rest := "", "", "00"
	if m := zoneNumber.FindStringSubmatch(name); m != nil {
		sign, hours, rest = m[1], m[2], m[3]
	} else if m := zoneShort.FindStringSubmatch(name); m != nil {
		sign, hours = m[1]+m[3], m[2]+m[4]
	}
	// No place is more than 12 hours west or 14 hours east.
	if h, m := number(hours), number(rest); sign != "" && h*60+m <= 14*60 && m < 60 {
		minutes = h*60 + m
		if sign == "-" {
			minutes = -minutes
		}
		return minutes, zoneOffset
	}
	if zoneWord.MatchString(s) {
		return 0, zoneUnknown
	}
	return 0, zoneNotOne
}

var unixNumber = regexp.MustCompile(`^-?\d+(?:\.\d+)?(?:[eE]\+?\d+)?$`)

// readUnix reads a count since 1970. A count of the wrong unit falls outside the plausible years.
func readUnix(s string, unit time.Duration) (d Date, reason string) {
	var seconds float64
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		perSecond := max(int64(time.Second/unit), 1)
		seconds = math.Floor(float64(n) / float64(perSecond))
	} else if x, err := strconv.ParseFloat(s, 64); err == nil {
		seconds = math.Floor(x / (float64(time.Second) / float64(unit)))
	} else {
		return Date{}, "the number is too large"
	}
	if math.Abs(seconds) > 1e11 {
		return Date{}, fmt.Sprintf("no plausible count of %v since 1970", unit)
	}
	t := time.Unix(int64(seconds), 0).UTC()
	if t.Year() < firstYear || t.Year() > lastYear {
		return Date{}, fmt.Sprintf("no plausible count of %v since 1970", unit)
	}
	return Date{Value: t.Format(time.RFC3339), Precision: PrecisionInstant, Method: FormUnix, Day: t.Format(time.DateOnly)}, ""
}

// zones are the names that dates carry, in minutes east of Greenwich: those of RFC 822 and those that
// mean one offset wherever news is written. IST (India, Ireland, Israel), AST (Atlantic, Arabia) and
// ET, which leaves open whether it is summer, are unknown on purpose.
var zones = map[string]int{
	"Z": 0, "UT": 0, "UTC": 0, "GMT": 0,
	"EST": -5 * 60, "EDT": -4 * 60, "CST": -6 * 60, "CDT": -5 * 60,
	"MST": -7 * 60, "MDT": -6 * 60, "PST": -8 * 60, "PDT": -7 * 60,
	"AKST": -9 * 60, "AKDT": -8 * 60, "HST": -10 * 60, "NST": -3*60 - 30, "NDT": -2*60 - 30,
	"BRT": -3 * 60, "ART": -3 * 60,
	"WET": 0, "WEST": 60, "BST": 60, "CET": 60, "CEST": 2 * 60, "MEZ": 60, "MESZ": 2 * 60,
	"EET": 2 * 60, "EEST": 3 * 60, "MSK": 3 * 60,
	"WAT": 60, "CAT": 2 * 60, "SAST": 2 * 60, "EAT": 3 * 60,
	"PKT": 5 * 60, "NPT": 5*60 + 45, "WIB": 7 * 60, "WITA": 8 * 60, "WIT": 9 * 60,
	"HKT": 8 * 60, "SGT": 8 * 60, "JST": 9 * 60, "KST": 9 * 60,
	"AWST": 8 * 60, "ACST": 9*60 + 30, "ACDT": 10*60 + 30, "AEST": 10 * 60, "AEDT": 11 * 60,
	"NZST": 12 * 60, "NZDT": 13 * 60,
}

// months are names and abbreviations in English, Spanish, Portuguese, French, German and Italian. No
// name stands for two months.
var months = wordNumbers(
	"january jan enero ene janeiro janvier janv januar jänner gennaio gen",
	"february feb febrero fevereiro fev février févr fév februar febbraio",
	"march mar marzo março mars märz mär mrz",
	"april apr abril abr avril avr aprile",
	"may mayo maio mai maggio mag",
	"june jun junio junho juin juni giugno giu",
	"july jul julio julho juillet juil juli luglio lug",
	"august aug agosto ago août aout",
	"september sept sep septiembre setiembre setembro set septembre settembre",
	"october oct octubre outubro out octobre oktober okt ottobre ott",
	"november nov noviembre novembro novembre",
	"december dec diciembre dic dezembro dez décembre déc dezember dicembre",
)

// weekdays are read over: sources print wrong ones, and the date says which it is.
var weekdays = wordSet(
	"monday tuesday wednesday thursday friday saturday sunday mon tue tues wed weds thu thur thurs fri sat sun",
	"lunes martes miércoles miercoles jueves viernes sábado sabado domingo lun mié mie jue vie sáb sab dom",
	"segunda-feira terça-feira quarta-feira quinta-feira sexta-feira segunda terça quarta quinta sexta seg ter qua qui sex",
	"lundi mardi mercredi jeudi vendredi samedi dimanche mer jeu ven sam dim",
	"montag dienstag mittwoch donnerstag freitag samstag sonntag mo di mi do fr sa so",
	"lunedì martedì mercoledì giovedì venerdì domenica mar gio",
)

func wordNumbers(lines ...string) map[string]int {
	out := map[string]int{}
	for i, line := range lines {
		for _, w := range strings.Fields(line) {
			out[w] = i + 1
		}
	}
	return out
}

func wordSet(lines ...string) map[string]bool {
	out := map[string]bool{}
	for _, line := range lines {
		for _, w := range strings.Fields(line) {
			out[w] = true
		}
	}
	return out
}
