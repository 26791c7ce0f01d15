// Formatting of numbers, and creation of elements.

export const by = id => document.getElementById(id);

export const scaled = (value, units, base) => {
  let unit = 0;
  // Values that would be rounded up to 1000 are displayed in the next unit.
  while (value >= 0.9995 * base && unit + 1 < units.length) { value /= base; unit += 1; }
  return (unit === 0 ? Math.round(value) : value.toPrecision(3)) + " " + units[unit];
};
export const bytes = value => scaled(value, ["B", "kB", "MB", "GB", "TB"], 1000);
export const bits = value => scaled(value * 8, ["bit/s", "kbit/s", "Mbit/s", "Gbit/s"], 1000);
export const whole = value => Math.round(value).toLocaleString("en").replaceAll(",", "\u2009");
export const count = value => value < 10 ? value.toFixed(1) : whole(value);
export const millis = value => value.toFixed(value < 10 ? 2 : 0) + " ms";
export const percent = value => (100 * value).toFixed(value < 0.1 ? 1 : 0) + " %";
export const time = seconds => seconds < 100 ? Math.round(seconds) + " s"
  : seconds < 6000 ? Math.round(seconds / 60) + " min"
  : seconds < 360000 ? Math.round(seconds / 3600) + " h" : Math.round(seconds / 86400) + " days";
export const limitName = limit => limit.replaceAll("_", " ");

// All texts of peers pass through this function, so they cannot become markup.
export const make = (name, text, className) => {
  const element = document.createElement(name);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  return element;
};

const SVG = "http://www.w3.org/2000/svg";
export const shape = (name, attributes) => {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
};

// Writes a text only if it differs, because each write causes a layout.
export const write = (element, text) => {
  if (element.textContent !== text) element.textContent = text;
};
