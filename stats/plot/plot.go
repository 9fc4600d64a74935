// Package plot draws what stats computes, as SVG and PNG: stacked bars of counts. It reads no files and
// no clock, its fonts are inside the binary, and the same numbers give the same bytes.
package plot

import (
	"bytes"
	"fmt"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// Bars is a chart of stacked bars: for each category one bar, of one part for each series.
type Bars struct {
	Title      string
	Axis       string // what is counted
	Categories []string
	Series     []Series
}

// Series is one colour of a chart: a value for every category.
type Series struct {
	Name   string
	Values []float64
}

// colours are told apart by readers who see red and green alike (Okabe and Ito, 2008).
var colours = []color.Color{
	color.RGBA{0x00, 0x72, 0xb2, 0xff}, color.RGBA{0xd5, 0x5e, 0x00, 0xff}, color.RGBA{0x99, 0x99, 0x99, 0xff},
	color.RGBA{0x00, 0x9e, 0x73, 0xff}, color.RGBA{0xcc, 0x79, 0xa7, 0xff}, color.RGBA{0xe6, 0x9f, 0x00, 0xff}, color.RGBA{0x56, 0xb4, 0xe9, 0xff},
}

// Size of a picture.
const (
	width  = 6 * vg.Inch
	height = 3.2 * vg.Inch
)

// Draw gives the chart as "svg" or "png".
func (b Bars) Draw(format string) ([]byte, error) {
	p := plot.New()
	p.Title.Text, p.Y.Label.Text = b.Title, b.Axis
	p.Y.Min = 0
	p.Legend.Top = true
	p.Title.Padding, p.Title.TextStyle.Font.Size = vg.Points(8), vg.Points(13)
	bar := vg.Points(min(60, 260/float64(max(len(b.Categories), 1))))
	var below *plotter.BarChart
	for i, s := range b.Series {
		if len(s.Values) != len(b.Categories) {
			return nil, fmt.Errorf("draw %s: series %s has %d values for %d categories", b.Title, s.Name, len(s.Values), len(b.Categories))
		}
		chart, err := plotter.NewBarChart(plotter.Values(s.Values), bar)
		if err != nil {
			return nil, fmt.Errorf("draw %s: %w", b.Title, err)
		}
		chart.Color, chart.LineStyle.Width = colours[i%len(colours)], 0
		if below != nil {
			chart.StackOn(below)
		}
		below = chart
		p.Add(chart)
		p.Legend.Add(s.Name, chart)
	}
	p.NominalX(b.Categories...)
	p.X.Min, p.X.Max = -0.6, float64(len(b.Categories))+0.2 // room for the legend beside the bars
	p.Legend.XOffs, p.Legend.Padding = -vg.Points(6), vg.Points(2)
	to, err := p.WriterTo(width, height, format)
	if err != nil {
		return nil, fmt.Errorf("draw %s: %w", b.Title, err)
	}
	var out bytes.Buffer
	if _, err := to.WriteTo(&out); err != nil {
		return nil, fmt.Errorf("draw %s: %w", b.Title, err)
	}
	return out.Bytes(), nil
}
