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

/** Returns the library's names of the browser and the system in a User-Agent header; null for an unknown name. */
export function readBrowser(userAgent: string): { browser: string | null; system: string | null } {
  const nameIn = (list: typeof browsers) => list.find(([pattern]) => pattern.test(userAgent))?.[1] ?? null
  return { browser: nameIn(browsers), system: nameIn(systems) }
}

/**
 * Returns browser and system, such as `Firefox, Windows`; null if both are unknown. A mail never contains the User-Agent header itself,
 * because a client can send any text in this header.
 */
export function browserName(userAgent: string): string | null {
  const { browser, system } = readBrowser(userAgent)
  const found = [browser, system].filter((name) => name !== null)
  return found.length > 0 ? found.join(', ') : null
}
