package corpus

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// instant and day are what the tables below expect of a date that is read.
func instant(value, method, day string) Date {
	return Date{Value: value, Precision: PrecisionInstant, Method: method, Day: day}
}

func calendar(day, method string) Date {
	return Date{Value: day, Precision: PrecisionDay, Method: method, Day: day}
}

func zoneless(day, method string) Date {
	return Date{Value: day, Precision: PrecisionDay, Method: method, ZoneUnknown: true, Day: day}
}

func TestReadDate(t *testing.T) {
	tests := []struct {
		printed string
		want    Date
	}{
		{"2025-06-03", calendar("2025-06-03", "iso")},
		{"2025/6/3", calendar("2025-06-03", "iso")},
		{"2025-06-03T21:30:00Z", instant("2025-06-03T21:30:00Z", "iso:name", "2025-06-03")},
		{"2025-06-03T21:30:00-04:00", instant("2025-06-04T01:30:00Z", "iso:offset", "2025-06-03")},
		{"2025-06-03T10:46:13+0200", instant("2025-06-03T08:46:13Z", "iso:offset", "2025-06-03")},
		{"2025-06-03T01:00:00+05:30", instant("2025-06-02T19:30:00Z", "iso:offset", "2025-06-03")},
		{"2025-06-03T21:30-04", instant("2025-06-04T01:30:00Z", "iso:offset", "2025-06-03")},
		{"2025-06-03T21:30:00.0000000Z", instant("2025-06-03T21:30:00Z", "iso:name", "2025-06-03")},
		{"2025-06-03T21:30:00.625982+00:00", instant("2025-06-03T21:30:00Z", "iso:offset", "2025-06-03")},
		{"2025-06-03t21:30:00z", instant("2025-06-03T21:30:00Z", "iso:name", "2025-06-03")},
		{"2025-06-03 11:21:59 UTC", instant("2025-06-03T11:21:59Z", "iso:name", "2025-06-03")},
		{"2025-06-03 21:30", zoneless("2025-06-03", "iso:none")},
		{"2025-06-03 17:22:16", zoneless("2025-06-03", "iso:none")},
		{"2025-06-03T00:00:00", zoneless("2025-06-03", "iso:none")},
		{" 2025-06-03\r\n 21:30\u00a0", zoneless("2025-06-03", "iso:none")},
		{"\u200e2025-06-03T21:30:00\u221204:00", instant("2025-06-04T01:30:00Z", "iso:offset", "2025-06-03")},
		{"2016-12-31T23:59:60Z", instant("2017-01-01T00:00:00Z", "iso:name", "2016-12-31")},

		{"20250603", calendar("2025-06-03", "compact")},
		{"20250603T213000Z", instant("2025-06-03T21:30:00Z", "compact:name", "2025-06-03")},
		{"20250603213000", zoneless("2025-06-03", "compact:none")},

		{"Tue, 03 Jun 2025 21:30:00 EDT", instant("2025-06-04T01:30:00Z", "mail:name", "2025-06-03")},
		{"Tue, 03 Jun 2025 21:30 EDT", instant("2025-06-04T01:30:00Z", "mail:name", "2025-06-03")},
		{"Fri, 3 Jan 2025 08:00:00 GMT", instant("2025-01-03T08:00:00Z", "mail:name", "2025-01-03")},
		{"Fri, 03 Jan 2025 08:00:00 +0100", instant("2025-01-03T07:00:00Z", "mail:offset", "2025-01-03")},
		{"Fri, 03 Jan 2025 08:00:00 -0000", instant("2025-01-03T08:00:00Z", "mail:offset", "2025-01-03")},
		{"03 Jun 25 21:30 EST", instant("2025-06-04T02:30:00Z", "mail:name", "2025-06-03")},
		{"Sunday, 06-Nov-94 08:49:37 GMT", instant("1994-11-06T08:49:37Z", "mail:name", "1994-11-06")},
		{"Seg, 01 Set 2025 21:30:00 -0300", instant("2025-09-02T00:30:00Z", "mail:offset", "2025-09-01")},
		{"Tue, 03 Jun 2025 21:30:00 XQT", zoneless("2025-06-03", "mail:unknown")},
		{"Tue, 03 Jun 2025 21:30:00", zoneless("2025-06-03", "mail:none")},
		{"28 November 2018", calendar("2018-11-28", "mail")},
		{"28th of November, 2018", calendar("2018-11-28", "mail")},
		{"3 Sept 2018", calendar("2018-09-03", "mail")},
		{"3. März 2021", calendar("2021-03-03", "mail")},
		{"3. Ma\u0308rz 2021", calendar("2021-03-03", "mail")},
		{"1er juillet 2020", calendar("2020-07-01", "mail")},
		{"28 de noviembre de 2018", calendar("2018-11-28", "mail")},
		{"terça-feira, 3 de junho de 2025", calendar("2025-06-03", "mail")},

		{"January 2, 2006", calendar("2006-01-02", "words")},
		{"Jan. 2, 2006", calendar("2006-01-02", "words")},
		{"JANUARY 2 2006", calendar("2006-01-02", "words")},
		{"Sunday, October 13th, 2019", calendar("2019-10-13", "words")},
		{"June 1st, 2020", calendar("2020-06-01", "words")},
		{"June 22nd, 2020", calendar("2020-06-22", "words")},
		{"Nov. 20, 2019, 9:28 AM EST", instant("2019-11-20T14:28:00Z", "words:name", "2019-11-20")},
		{"November 20, 2019 at 9:28 p.m. PST", instant("2019-11-21T05:28:00Z", "words:name", "2019-11-20")},
		{"Nov 20, 2019 12:05 am UTC", instant("2019-11-20T00:05:00Z", "words:name", "2019-11-20")},
		{"Nov 20, 2019 12:05pm UTC", instant("2019-11-20T12:05:00Z", "words:name", "2019-11-20")},
		{"Nov 20, 2019 9:28 PM ET", zoneless("2019-11-20", "words:unknown")},
		{"Wed Nov 20 2019 09:28:00 GMT+0000 (UTC)", instant("2019-11-20T09:28:00Z", "words:offset", "2019-11-20")},
		{"Wed Nov 20 2019 09:28:00 GMT-0500 (Eastern Standard Time)", instant("2019-11-20T14:28:00Z", "words:offset", "2019-11-20")},

		{"Mon Dec 29 20:57:54 UTC 2014", instant("2014-12-29T20:57:54Z", "ctime:name", "2014-12-29")},
		{"Wed Aug 27 23:08:45 -0500 2008", instant("2008-08-28T04:08:45Z", "ctime:offset", "2008-08-27")},
		{"Mon Dec 29 20:57:54 2014", zoneless("2014-12-29", "ctime:none")},

		{"25-8-2020", calendar("2020-08-25", "numeric")},
		{"8/25/2020", calendar("2020-08-25", "numeric")},
		{"04/04/2020", calendar("2020-04-04", "numeric")},
		{"03.04.2020", calendar("2020-04-03", "numeric")},

		{"29 February 2024", calendar("2024-02-29", "mail")},
		{"November 19, 1863", calendar("1863-11-19", "words")},
	}
	for _, tt := range tests {
		got, err := ReadDate(tt.printed)
		if err != nil {
			t.Errorf("ReadDate(%q): %v", tt.printed, err)
			continue
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("ReadDate(%q) (-want +got):\n%s", tt.printed, diff)
		}
	}
}

func TestReadDateZones(t *testing.T) {
	tests := []struct{ zone, want string }{
		{"Z", "2025-06-03T12:00:00Z"}, {"UT", "2025-06-03T12:00:00Z"}, {"UTC", "2025-06-03T12:00:00Z"}, {"GMT", "2025-06-03T12:00:00Z"},
		{"EST", "2025-06-03T17:00:00Z"}, {"EDT", "2025-06-03T16:00:00Z"}, {"CST", "2025-06-03T18:00:00Z"}, {"CDT", "2025-06-03T17:00:00Z"},
		{"MST", "2025-06-03T19:00:00Z"}, {"MDT", "2025-06-03T18:00:00Z"}, {"PST", "2025-06-03T20:00:00Z"}, {"PDT", "2025-06-03T19:00:00Z"},
		{"BST", "2025-06-03T11:00:00Z"}, {"CET", "2025-06-03T11:00:00Z"}, {"CEST", "2025-06-03T10:00:00Z"}, {"JST", "2025-06-03T03:00:00Z"},
		{"NPT", "2025-06-03T06:15:00Z"}, {"est", "2025-06-03T17:00:00Z"}, {"(EDT)", "2025-06-03T16:00:00Z"}, {"EDT (New York)", "2025-06-03T16:00:00Z"},
		{"+14:00", "2025-06-02T22:00:00Z"}, {"GMT+5", "2025-06-03T07:00:00Z"}, {"UTC+05:30", "2025-06-03T06:30:00Z"},
		// A place whose rules are not in the table, an abbreviation of several places, a military letter, an offset of no place.
		{"America/New_York", ""}, {"Eastern Daylight Time", ""}, {"IST", ""}, {"AST", ""}, {"ET", ""}, {"A", ""}, {"XQT", ""}, {"+9900", ""}, {"+0175", ""}, {"+14:01", ""},
	}
	for _, tt := range tests {
		got, err := ReadDate("Tue, 03 Jun 2025 12:00:00 " + tt.zone)
		if err != nil {
			t.Errorf("zone %s: %v", tt.zone, err)
			continue
		}
		if tt.want == "" {
			if diff := cmp.Diff(zoneless("2025-06-03", "mail:unknown"), got); diff != "" {
				t.Errorf("zone %s (-want +got):\n%s", tt.zone, diff)
			}
		} else if got.Value != tt.want || got.Precision != PrecisionInstant || got.ZoneUnknown {
			t.Errorf("zone %s = %+v, want %s", tt.zone, got, tt.want)
		}
	}
	for name, minutes := range zones {
		if name != strings.ToUpper(name) || minutes < -12*60 || minutes > 14*60 {
			t.Errorf("zone %s is at %d minutes", name, minutes)
		}
	}
}

func TestReadDateImpossible(t *testing.T) {
	tests := []struct{ printed, reason string }{
		{"", "nothing is printed"},
		{" \u200b ", "nothing is printed"},
		{"0001-01-01 00:00:00Z", "year 0001 is not plausible"},
		{"0001-01-01T00:00:00", "year 0001 is not plausible"},
		{"0000-00-00", "year 0000 is not plausible"},
		{"9999-12-31", "year 9999 is not plausible"},
		{"2025-13-01", "month 13 does not exist"},
		{"2025-00-10", "month 00 does not exist"},
		{"2025-02-29", "day 29 does not exist in February 2025"},
		{"31 April 2025", "day 31 does not exist in April 2025"},
		{"30-02-2024", "day 30 does not exist in February 2024"},
		{"31-31-2024", "month 31 does not exist"},
		{"2025-06-03T24:00:00Z", "time 24:00:00 does not exist"},
		{"2025-06-03T21:60:00Z", "time 21:60:00 does not exist"},
		{"June 3, 2025 13:00 PM", "hour 13 of half a day does not exist"},
		{"June 3, 2025 0:30 am", "hour 0 of half a day does not exist"},
		{"03/04/2020", "day and month may be either way round"},
		{"3 Jun 25", "the year has two digits"},
		{"3 Floreal 2025", `"Floreal" is no month`},
		{"Until 28 November 2018", `"Until" is no weekday`},
		{"2025-06-03 21:30 by our staff, in London", `"by our staff, in London" follows the time`},
		{"2025-06/03", "no known form"},
		{"2025-06", "no known form"},
		{"2025", "no known form"},
		{"1 day ago", "no known form"},
		{"date:now -600 seconds", "no known form"},
		{"1749000600", "no known form"},
		{"P3M,14S", "no known form"},
		{strings.Repeat("2025-06-03 ", 20), "too long for a date"},
	}
	for _, tt := range tests {
		got, err := ReadDate(tt.printed)
		var de *DateError
		if !errors.As(err, &de) || de.Reason != tt.reason || got != (Date{}) {
			t.Errorf("ReadDate(%q) = %+v, %v; want %s", tt.printed, got, err, tt.reason)
		}
		if len(de.Error()) > 400 {
			t.Errorf("the error is %d bytes long", len(de.Error()))
		}
	}
	if _, err := ReadDate("2025-13-01"); err == nil || err.Error() != `read date "2025-13-01": month 13 does not exist` {
		t.Errorf("error = %v", err)
	}
}

func TestDateForm(t *testing.T) {
	tests := []struct {
		form    DateForm
		printed string
		want    Date
	}{
		{DateForm{Unix: time.Second}, "1749000600", instant("2025-06-04T01:30:00Z", "unix", "2025-06-04")},
		{DateForm{Unix: time.Second}, "1749000600.75", instant("2025-06-04T01:30:00Z", "unix", "2025-06-04")},
		{DateForm{Unix: time.Second}, "1.7490006e9", instant("2025-06-04T01:30:00Z", "unix", "2025-06-04")},
		{DateForm{Unix: time.Second}, "20250603", instant("1970-08-23T09:10:03Z", "unix", "1970-08-23")},
		{DateForm{Unix: time.Millisecond}, "1749000600999", instant("2025-06-04T01:30:00Z", "unix", "2025-06-04")},
		{DateForm{Unix: time.Millisecond}, "-1", instant("1969-12-31T23:59:59Z", "unix", "1969-12-31")},
		{DateForm{Unix: time.Second}, "2025-06-03", calendar("2025-06-03", "iso")},
		{DateForm{DayFirst: true}, "03-04-2020", calendar("2020-04-03", "numeric")},
		{DateForm{MonthFirst: true}, "03/04/2020", calendar("2020-03-04", "numeric")},
		{DateForm{MonthFirst: true}, "03.04.2020", calendar("2020-03-04", "numeric")},
		{DateForm{MonthFirst: true}, "25/04/2020", calendar("2020-04-25", "numeric")},
		{DateForm{Zone: "UTC"}, "2025-06-03T21:30:00", instant("2025-06-03T21:30:00Z", "iso:assumed", "2025-06-03")},
		{DateForm{Zone: "+08:00"}, "2025-06-03 01:30", instant("2025-06-02T17:30:00Z", "iso:assumed", "2025-06-03")},
		{DateForm{Zone: "UTC"}, "20250603213000", instant("2025-06-03T21:30:00Z", "compact:assumed", "2025-06-03")},
		// What is printed wins over what is assumed, and an unknown zone is not overruled.
		{DateForm{Zone: "UTC"}, "2025-06-03 21:30 EDT", instant("2025-06-04T01:30:00Z", "iso:name", "2025-06-03")},
		{DateForm{Zone: "UTC"}, "2025-06-03 21:30 XQT", zoneless("2025-06-03", "iso:unknown")},
		{DateForm{Zone: "UTC"}, "2025-06-03", calendar("2025-06-03", "iso")},
	}
	for _, tt := range tests {
		got, err := tt.form.Read(tt.printed)
		if err != nil {
			t.Errorf("%+v.Read(%q): %v", tt.form, tt.printed, err)
			continue
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%+v.Read(%q) (-want +got):\n%s", tt.form, tt.printed, diff)
		}
	}
	wrong := []struct {
		form    DateForm
		printed string
	}{
		{DateForm{Unix: time.Second}, "1749000600999"}, // milliseconds
		{DateForm{Unix: time.Second}, "1e400"},
		{DateForm{Unix: time.Millisecond}, "99999999999999999999999"},
		{DateForm{Unix: time.Second}, "NaN"},
		{DateForm{Zone: "XQT"}, "2025-06-03 21:30"},
	}
	for _, tt := range wrong {
		if got, err := tt.form.Read(tt.printed); err == nil {
			t.Errorf("%+v.Read(%q) = %+v, want an error", tt.form, tt.printed, got)
		}
	}
}

// hd06Dates are what a feed prints; the named input first, then other routes to the same slip, then
// the boundary where a name is one letter away from a known one.
var hd06Dates = []string{
	"Tue, 03 Jun 2025 21:30:00 EDT", "Wed, 15 Jan 2025 23:10:00 PST", "Sat, 01 Mar 2025 08:00:00 XQT",
	"June 3, 2025, 9:30 PM EDT", "2025-06-03 21:30:00 EDT", "Tue Jun 03 21:30:00 EDT 2025", "Tue, 03 Jun 2025 21:30 EDT",
	"Sat, 01 Mar 2025 08:00:00 ES", "Sat, 01 Mar 2025 08:00:00", "Sat, 01 Mar 2025 08:00:00 America/New_York",
}

var hd06Want = []Date{
	instant("2025-06-04T01:30:00Z", "mail:name", "2025-06-03"),
	instant("2025-01-16T07:10:00Z", "mail:name", "2025-01-15"),
	zoneless("2025-03-01", "mail:unknown"),
	instant("2025-06-04T01:30:00Z", "words:name", "2025-06-03"),
	instant("2025-06-04T01:30:00Z", "iso:name", "2025-06-03"),
	instant("2025-06-04T01:30:00Z", "ctime:name", "2025-06-03"),
	instant("2025-06-04T01:30:00Z", "mail:name", "2025-06-03"),
	zoneless("2025-03-01", "mail:unknown"),
	zoneless("2025-03-01", "mail:none"),
	zoneless("2025-03-01", "mail:unknown"),
}

// TestHD06: a zone's name is read from our table, whatever the machine's own zone is, and an unknown
// one leaves a day.
func TestHD06(t *testing.T) {
	if out := os.Getenv("ASSAY_HD06_OUT"); out != "" { // the child of the runs below
		writeHD06(t, out)
		return
	}
	var got []Date
	for _, printed := range hd06Dates {
		d, err := ReadDate(printed)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, d)
	}
	if diff := cmp.Diff(hd06Want, got); diff != "" {
		t.Errorf("dates (-want +got):\n%s", diff)
	}

	// TZ is read once, when a program starts; so each zone needs a program of its own.
	records := map[string]string{}
	for _, tz := range []string{"UTC", "Asia/Tokyo", "No/Such_Place", ":" + filepath.Join(t.TempDir(), "none")} {
		out := filepath.Join(t.TempDir(), "dates.json")
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHD06$", "-test.count=1")
		cmd.Env = append(slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "TZ=") || strings.HasPrefix(e, "ZONEINFO=") }),
			"TZ="+tz, "ZONEINFO="+filepath.Join(t.TempDir(), "none.zip"), "ASSAY_HD06_OUT="+out)
		if b, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("TZ=%s: %v\n%s", tz, err, b)
		}
		b, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		records[tz] = string(b)
	}
	want, err := json.Marshal(hd06Want)
	if err != nil {
		t.Fatal(err)
	}
	for tz, got := range records {
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("under TZ=%s (-want +got):\n%s", tz, diff)
		}
	}
}

func writeHD06(t *testing.T, out string) {
	var got []Date
	for _, printed := range hd06Dates {
		d, err := ReadDate(printed)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, d)
	}
	b, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(out, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// A machine without zone data cannot be made inside a test, so the source is asked instead: whatever
// could reach zone data or the local zone is not called at all.
func TestHD06NeedsNoZoneData(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "date.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	reaches := []string{"LoadLocation", "LoadLocationFromTZData", "Parse", "ParseInLocation", "Local", "Now", "In", "Zone", "FixedZone"}
	ast.Inspect(file, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains(reaches, s.Sel.Name) {
			t.Errorf("date.go uses time.%s", s.Sel.Name)
		}
		return true
	})
}

func FuzzDate(f *testing.F) {
	for _, s := range hd06Dates {
		f.Add(s)
	}
	for _, s := range []string{
		"2025-06-03", "2025-06-03T21:30:00.625982+05:30", "20250603T213000Z", "28 de noviembre de 2018", "Nov. 20, 2019, 9:28 p.m. EST",
		"Wed Nov 20 2019 09:28:00 GMT+0000 (UTC)", "03.04.2020", "1749000600.5", "0001-01-01 00:00:00Z", "3. Ma\u0308rz 2021", "31-12-2199 23:00 HST", "\xff2025",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, form := range []DateForm{{}, {Unix: time.Second, DayFirst: true, Zone: "-03:30"}, {Unix: time.Millisecond, MonthFirst: true, Zone: "JST"}} {
			d, err := form.Read(s)
			if err != nil {
				if d != (Date{}) {
					t.Errorf("Read(%q) = %+v beside %v", s, d, err)
				}
				continue
			}
			layout := time.DateOnly
			if d.Precision == PrecisionInstant {
				layout = time.RFC3339
			}
			at, err := time.Parse(layout, d.Value)
			if err != nil || at.Format(layout) != d.Value || d.ZoneUnknown && d.Precision != PrecisionDay {
				t.Fatalf("Read(%q) = %+v: %v", s, d, err)
			}
			day, err := time.Parse(time.DateOnly, d.Day)
			if gap := at.Sub(day); err != nil || gap < -14*time.Hour || gap >= 38*time.Hour || d.Precision == PrecisionDay && gap != 0 {
				t.Errorf("Read(%q) = %+v: the day is %v away, %v", s, d, gap, err)
			}
			if at.Year() < firstYear || at.Year() > lastYear {
				continue // the last hours of the last year, in another zone
			}
			if again, err := ReadDate(d.Value); err != nil || again.Value != d.Value || again.Precision != d.Precision {
				t.Errorf("Read(%q) = %+v, which reads as %+v, %v", s, d, again, err)
			}
		}
	})
}
