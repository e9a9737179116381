/** Returns the known name that needs the fewest edits to become the given name. The comparison ignores letter case and separators. */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  const wanted = plain(name)
  let best: { name: string; distance: number } | undefined
  for (const candidate of known) {
    const distance = editDistance(wanted, plain(candidate))
    if (!best || distance < best.distance) best = { name: candidate, distance }
  }
  return best?.name
}

function plain(name: string): string {
  return name
    .slice(0, 64)
    .toLowerCase()
    .replace(/^auth_/, '')
    .replace(/[^a-z0-9]/g, '')
}

/**
 * Returns the Levenshtein distance of two names, computed row by row. A missing character counts half as much as a wrong character, because
 * hosts often shorten a name, such as `accessTokenTtl`.
 */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index / 2)
  for (let i = 1; i <= from.length; i++) {
    const next = [i]
    for (let j = 1; j <= to.length; j++) {
      const substitution = (row[j - 1] ?? 0) + (from[i - 1] === to[j - 1] ? 0 : 1)
      next.push(Math.min(substitution, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 0.5))
    }
    row = next
  }
  return row[to.length] ?? 0
}
