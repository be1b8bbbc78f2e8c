package main

import "math"

// A unit measures a quantity: one of it is factor base units, and offset shifts its zero.
type unit struct {
	quantity string
	symbol   string
	names    string // in small letters, with spaces between; the first is the usual one
	factor   float64
	offset   float64 // base units at 0, for temperatures
	inverse  bool    // the base unit per this one: less fuel is more miles per gallon
}

func (u *unit) toBase(v float64) float64 {
	if u.inverse {
		return u.factor / v
	}
	return v*u.factor + u.offset
}

func (u *unit) fromBase(v float64) float64 {
	if u.inverse {
		return u.factor / v
	}
	return (v - u.offset) / u.factor
}

// Exact definitions: the international foot and pound, and the US and the imperial gallon in cubic meters.
const (
	inch     = 0.0254
	foot     = 12 * inch
	yard     = 3 * foot
	mile     = 1760 * yard
	nautical = 1852
	pound    = 0.45359237
	gallon   = 231 * inch * inch * inch
	imperial = 4.54609e-3
	gravity  = 9.80665
	calorie  = 4.184
	day      = 24 * 60 * 60
	year     = 365.25 * day
)

// units are all units, grouped by quantity.
var units = []unit{
	{"length", "m", "meter metre", 1, 0, false},
	{"length", "km", "kilometer kilometre", 1e3, 0, false},
	{"length", "dm", "decimeter decimetre", 1e-1, 0, false},
	{"length", "cm", "centimeter centimetre", 1e-2, 0, false},
	{"length", "mm", "millimeter millimetre", 1e-3, 0, false},
	{"length", "μm", "micrometer micrometre um micron", 1e-6, 0, false},
	{"length", "nm", "nanometer nanometre", 1e-9, 0, false},
	{"length", "in", "inch \"", inch, 0, false},
	{"length", "ft", "foot feet '", foot, 0, false},
	{"length", "yd", "yard", yard, 0, false},
	{"length", "mi", "mile", mile, 0, false},
	{"length", "nmi", "nautical-mile", nautical, 0, false},
	{"length", "au", "astronomical-unit", 149597870700, 0, false},
	{"length", "ly", "light-year lightyear", 299792458 * year, 0, false},
	{"length", "pc", "parsec", 149597870700 * 648000 / math.Pi, 0, false},

	{"area", "m²", "square-meter square-metre sqm", 1, 0, false},
	{"area", "km²", "square-kilometer square-kilometre", 1e6, 0, false},
	{"area", "cm²", "square-centimeter square-centimetre", 1e-4, 0, false},
	{"area", "mm²", "square-millimeter square-millimetre", 1e-6, 0, false},
	{"area", "ha", "hectare", 1e4, 0, false},
	{"area", "a", "are", 1e2, 0, false},
	{"area", "in²", "square-inch sqin", inch * inch, 0, false},
	{"area", "ft²", "square-foot square-feet sqft", foot * foot, 0, false},
	{"area", "yd²", "square-yard", yard * yard, 0, false},
	{"area", "mi²", "square-mile", mile * mile, 0, false},
	{"area", "ac", "acre", 4840 * yard * yard, 0, false},

	{"volume", "m³", "cubic-meter cubic-metre", 1, 0, false},
	{"volume", "L", "liter litre", 1e-3, 0, false},
	{"volume", "hL", "hectoliter hectolitre", 1e-1, 0, false},
	{"volume", "dL", "deciliter decilitre", 1e-4, 0, false},
	{"volume", "cL", "centiliter centilitre", 1e-5, 0, false},
	{"volume", "mL", "milliliter millilitre cc", 1e-6, 0, false},
	{"volume", "cm³", "cubic-centimeter cubic-centimetre", 1e-6, 0, false},
	{"volume", "in³", "cubic-inch", inch * inch * inch, 0, false},
	{"volume", "ft³", "cubic-foot cubic-feet", foot * foot * foot, 0, false},
	{"volume", "gal", "gallon us-gallon", gallon, 0, false},
	{"volume", "qt", "quart us-quart", gallon / 4, 0, false},
	{"volume", "pt", "pint us-pint", gallon / 8, 0, false},
	{"volume", "cup", "us-cup", gallon / 16, 0, false},
	{"volume", "fl-oz", "fluid-ounce us-fluid-ounce floz", gallon / 128, 0, false},
	{"volume", "tbsp", "tablespoon", gallon / 256, 0, false},
	{"volume", "tsp", "teaspoon", gallon / 768, 0, false},
	{"volume", "imp-gal", "imperial-gallon uk-gallon", imperial, 0, false},
	{"volume", "imp-pt", "imperial-pint uk-pint", imperial / 8, 0, false},
	{"volume", "imp-fl-oz", "imperial-fluid-ounce uk-fluid-ounce", imperial / 160, 0, false},
	{"volume", "bbl", "oil-barrel barrel", 42 * gallon, 0, false},

	{"mass", "kg", "kilogram", 1, 0, false},
	{"mass", "g", "gram", 1e-3, 0, false},
	{"mass", "mg", "milligram", 1e-6, 0, false},
	{"mass", "μg", "microgram ug mcg", 1e-9, 0, false},
	{"mass", "t", "tonne metric-ton", 1e3, 0, false},
	{"mass", "lb", "pound lbs", pound, 0, false},
	{"mass", "oz", "ounce", pound / 16, 0, false},
	{"mass", "st", "stone", 14 * pound, 0, false},
	{"mass", "ton", "short-ton us-ton", 2000 * pound, 0, false},
	{"mass", "long-ton", "imperial-ton", 2240 * pound, 0, false},
	{"mass", "ct", "carat", 2e-4, 0, false},
	{"mass", "ozt", "troy-ounce", 0.0311034768, 0, false},

	{"temperature", "K", "kelvin", 1, 0, false},
	{"temperature", "°C", "celsius centigrade c degc degree-celsius degrees-celsius", 1, 273.15, false},
	{"temperature", "°F", "fahrenheit f degf degree-fahrenheit degrees-fahrenheit", 5. / 9, 459.67 * 5 / 9, false},
	{"temperature", "°R", "rankine", 5. / 9, 0, false},

	{"speed", "m/s", "meter-per-second metre-per-second meters-per-second mps", 1, 0, false},
	{"speed", "km/h", "kilometer-per-hour kilometre-per-hour kilometers-per-hour kph kmh", 1e3 / 3600., 0, false},
	{"speed", "mph", "mile-per-hour miles-per-hour mi/h", mile / 3600, 0, false},
	{"speed", "ft/s", "foot-per-second feet-per-second fps", foot, 0, false},
	{"speed", "kn", "knot kt kts", nautical / 3600., 0, false},
	{"speed", "c0", "speed-of-light lightspeed", 299792458, 0, false},

	{"time", "s", "second sec", 1, 0, false},
	{"time", "ms", "millisecond msec", 1e-3, 0, false},
	{"time", "μs", "microsecond us usec", 1e-6, 0, false},
	{"time", "ns", "nanosecond", 1e-9, 0, false},
	{"time", "min", "minute", 60, 0, false},
	{"time", "h", "hour hr", 3600, 0, false},
	{"time", "d", "day", day, 0, false},
	{"time", "wk", "week", 7 * day, 0, false},
	{"time", "mo", "month", year / 12, 0, false},
	{"time", "yr", "year", year, 0, false},

	{"data", "B", "byte", 1, 0, false},
	{"data", "bit", "b", 1. / 8, 0, false},
	{"data", "kB", "kilobyte", 1e3, 0, false},
	{"data", "MB", "megabyte", 1e6, 0, false},
	{"data", "GB", "gigabyte", 1e9, 0, false},
	{"data", "TB", "terabyte", 1e12, 0, false},
	{"data", "PB", "petabyte", 1e15, 0, false},
	{"data", "KiB", "kibibyte", 1 << 10, 0, false},
	{"data", "MiB", "mebibyte", 1 << 20, 0, false},
	{"data", "GiB", "gibibyte", 1 << 30, 0, false},
	{"data", "TiB", "tebibyte", 1 << 40, 0, false},
	{"data", "PiB", "pebibyte", 1 << 50, 0, false},
	{"data", "kbit", "kilobit kb", 1e3 / 8, 0, false},
	{"data", "Mbit", "megabit mb", 1e6 / 8, 0, false},
	{"data", "Gbit", "gigabit gb", 1e9 / 8, 0, false},
	{"data", "Tbit", "terabit tb", 1e12 / 8, 0, false},
	{"data", "Pbit", "petabit pb", 1e15 / 8, 0, false},

	{"pressure", "Pa", "pascal", 1, 0, false},
	{"pressure", "hPa", "hectopascal", 1e2, 0, false},
	{"pressure", "kPa", "kilopascal", 1e3, 0, false},
	{"pressure", "MPa", "megapascal", 1e6, 0, false},
	{"pressure", "bar", "bars", 1e5, 0, false},
	{"pressure", "mbar", "millibar", 1e2, 0, false},
	{"pressure", "psi", "pound-per-square-inch", pound * gravity / (inch * inch), 0, false},
	{"pressure", "atm", "atmosphere", 101325, 0, false},
	{"pressure", "Torr", "mmhg", 101325. / 760, 0, false},

	{"energy", "J", "joule", 1, 0, false},
	{"energy", "kJ", "kilojoule", 1e3, 0, false},
	{"energy", "MJ", "megajoule", 1e6, 0, false},
	{"energy", "Wh", "watt-hour", 3600, 0, false},
	{"energy", "kWh", "kilowatt-hour", 3.6e6, 0, false},
	{"energy", "MWh", "megawatt-hour", 3.6e9, 0, false},
	{"energy", "cal", "calorie", calorie, 0, false},
	{"energy", "kcal", "kilocalorie food-calorie", 1e3 * calorie, 0, false},
	{"energy", "BTU", "british-thermal-unit", 1055.05585262, 0, false},
	{"energy", "eV", "electronvolt electron-volt", 1.602176634e-19, 0, false},

	{"power", "W", "watt", 1, 0, false},
	{"power", "mW", "milliwatt", 1e-3, 0, false},
	{"power", "kW", "kilowatt", 1e3, 0, false},
	{"power", "MW", "megawatt", 1e6, 0, false},
	{"power", "GW", "gigawatt", 1e9, 0, false},
	{"power", "hp", "horsepower", 550 * foot * pound * gravity, 0, false},
	{"power", "PS", "metric-horsepower", 75 * gravity, 0, false},

	{"force", "N", "newton", 1, 0, false},
	{"force", "kN", "kilonewton", 1e3, 0, false},
	{"force", "lbf", "pound-force", pound * gravity, 0, false},
	{"force", "kgf", "kilogram-force kilopond", gravity, 0, false},

	{"angle", "rad", "radian", 1, 0, false},
	{"angle", "°", "deg degree", math.Pi / 180, 0, false},
	{"angle", "′", "arcmin arcminute", math.Pi / 180 / 60, 0, false},
	{"angle", "″", "arcsec arcsecond", math.Pi / 180 / 3600, 0, false},
	{"angle", "gon", "grad gradian", math.Pi / 200, 0, false},
	{"angle", "turn", "revolution", 2 * math.Pi, 0, false},

	{"frequency", "Hz", "hertz", 1, 0, false},
	{"frequency", "kHz", "kilohertz", 1e3, 0, false},
	{"frequency", "MHz", "megahertz", 1e6, 0, false},
	{"frequency", "GHz", "gigahertz", 1e9, 0, false},
	{"frequency", "rpm", "revolution-per-minute revolutions-per-minute", 1. / 60, 0, false},

	{"fuel consumption", "L/100km", "liter-per-100-kilometers litre-per-100-kilometres liters-per-100-km litres-per-100-km l/100-km", 1, 0, false},
	{"fuel consumption", "km/L", "kilometer-per-liter kilometre-per-litre", 100, 0, true},
	{"fuel consumption", "mpg", "mile-per-gallon miles-per-gallon us-mpg", 100 * gallon * 1e6 / mile, 0, true},
	{"fuel consumption", "imp-mpg", "imperial-mpg uk-mpg", 100 * imperial * 1e6 / mile, 0, true},
}
