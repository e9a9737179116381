import type { Request } from 'express'
import { ConfigurationError } from '../../core/errors'

/**
 * Returns a function that checks whether the path of a request is excluded. The function compares whole segments from the app's root. It
 * ignores letter case, unless the app has `case sensitive routing`. The function reads the path that Express uses for its routes. The
 * function never excludes a path that a later handler could read differently. Such a path contains `..`, `%2e`, `//`, `\`, or slashes that
 * are encoded once or twice.
 * @throws ConfigurationError for an invalid path
 */
export function excludedPaths(exclude: readonly string[] = []): (req: Request) => boolean {
  if (!Array.isArray(exclude)) throw new ConfigurationError('csrfGuard: exclude must be a list of paths.')
  const prefixes = exclude.map(segmentsOfPrefix)
  if (prefixes.length === 0) return () => false

  return (req) => {
    if (!req.app) return false // no request of Express, so that no route of it was chosen
    const path = req.baseUrl + req.path
    if (!isPlain(path)) return false
    const sameCase = req.app.enabled('case sensitive routing') ? (text: string) => text : lowerAscii
    const segments = sameCase(path).split('/')
    return prefixes.some((prefix) => prefix.every((segment, index) => sameCase(segment) === segments[index]))
  }
}

/**
 * Returns the segments of a prefix in the encoding of a request's path, because Express compares encoded paths: `%6f` and `o` are
 * different.
 */
function segmentsOfPrefix(prefix: unknown): readonly string[] {
  const isPath = typeof prefix === 'string' && /^\/[^/]/.test(prefix) && !/[?#*%:(){}]/.test(prefix) && prefix.isWellFormed()
  if (!isPath || !isPlain(encodeURI(prefix)))
    throw new ConfigurationError(
      'csrfGuard: exclude needs full paths such as /webhooks. A path has no pattern, no /./ or /../ and no percent-encoding.',
    )
  return encodeURI(prefix).replace(/\/$/, '').split('/')
}

/** Returns true if every server reads the path in the same way. */
function isPlain(path: string): boolean {
  if (!/^(\/[^/]+)*\/?$/.test(path) || /[\\\0]|%(00|25|2f|5c)/i.test(path)) return false
  return path.split('/').every((segment) => !isDots(segment))
}

/** Returns true for `.`, `..` and their encodings. The function ignores `;…` at the end, because some servers cut `;…` off first. */
function isDots(segment: string): boolean {
  return /^(\.|%2e){1,2}(;|%3b|$)/i.test(segment)
}

function lowerAscii(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
}
