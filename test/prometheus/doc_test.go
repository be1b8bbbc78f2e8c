// Package prometheus_test lets the real Prometheus scrape the real server: every alert of the chart fires because of its fault, and every
// query of the dashboard finds something. It needs the programs prometheus and promtool; make setup-prometheus installs them.
package prometheus_test
