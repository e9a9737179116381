/** Quotes each part of a path such as `app.people`. */
export function quotedPath(path: string, quote: '"' | '`'): string {
  return path
    .split('.')
    .map((part) => quotedName(part, quote))
    .join('.')
}

export function quotedName(name: string, quote: '"' | '`'): string {
  return `${quote}${name.replaceAll(quote, quote + quote)}${quote}`
}
