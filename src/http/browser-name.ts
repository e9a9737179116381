const browsers: readonly (readonly [pattern: RegExp, name: string])[] = [
  [/\bEdgA?\//, 'Edge'],
  [/\bOPR\//, 'Opera'],
  [/\bSamsungBrowser\//, 'Samsung Internet'],
  [/\b(?:Firefox|FxiOS)\//, 'Firefox'],
  [/\b(?:Chrome|CriOS)\//, 'Chrome'],
  [/\bVersion\/[\d.]+ .*Safari\//, 'Safari'],
]

const systems: readonly (readonly [pattern: RegExp, name: string])[] = [
  [/\b(?:iPhone|iPad|iPod)\b/, 'iOS'],
  [/\bAndroid\b/, 'Android'],
  [/\bWindows\b/, 'Windows'],
  [/\bMac OS X\b/, 'macOS'],
  [/\bCrOS\b/, 'ChromeOS'],
  [/\bLinux\b/, 'Linux'],
]

/** Returns the browser and the system of a User-Agent header, in our own words. Null: unknown. */
export function readBrowser(userAgent: string): { browser: string | null; system: string | null } {
  const nameIn = (list: typeof browsers) => list.find(([pattern]) => pattern.test(userAgent))?.[1] ?? null
  return { browser: nameIn(browsers), system: nameIn(systems) }
}

/**
 * Returns browser and system, such as `Firefox, Windows`. Null: both are unknown. Mails never contain the header itself, because its sender
 * can write any text in it.
 */
export function browserName(userAgent: string): string | null {
  const { browser, system } = readBrowser(userAgent)
  const found = [browser, system].filter((name) => name !== null)
  return found.length > 0 ? found.join(', ') : null
}
