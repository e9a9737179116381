import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'

/** Which rules of each chapter are to have a row; a chapter joins when the features it is about are there. */
const chapters: Record<string, string[]> = {
  '3.1': ids('R', 1, 14),
  '3.2': ids('R', 20, 43),
  '3.3': ids('R', 50, 59),
  '3.4': ids('R', 60, 69),
  '3.5': ids('R', 70, 79),
  '3.6': ids('R', 80, 89),
  '3.7': ids('R', 90, 99),
  '3.8': ids('R', 100, 106),
  '3.9': ids('R', 110, 117),
  '3.10': ids('R', 120, 123),
  '3.11': ids('R', 130, 137),
  '3.12': ids('R', 140, 144),
  '5.1': ids('C', 1, 24),
  '5.2': ids('F', 1, 25),
}

const folder = import.meta.dirname
const rows = rowsOf(readFileSync(join(folder, 'security-bar.md'), 'utf8'))
const tests = new Map(
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.test.ts') && !file.endsWith('security-bar.test.ts'))
    .map((file) => [file, readFileSync(join(folder, file), 'utf8')]),
)

describe('test/security-bar.md', () => {
  test.each(Object.entries(chapters))('has a row for every rule of chapter %s', (_chapter, wanted) => {
    expect(wanted.filter((id) => !rows.has(id))).toEqual([])
  })

  test('names only test files that exist', () => {
    const named = [...rows.values()].flatMap((row) => [...row.matchAll(/`([\w/-]+\.test\.ts)`/g)].map(([, file]) => String(file)))
    const isThere = (file: string) => [...tests.keys()].some((path) => path === file || path.endsWith(`/${file}`))
    expect(named.filter((file) => !isThere(file))).toEqual([])
    expect(named.length).toBeGreaterThan(50)
  })

  test('every rule that is not put off has a test with its id in the name', () => {
    const heldNow = [...rows].filter(([, row]) => !/\blater\b/i.test(row)).map(([id]) => id)
    const inNames = [...tests.values()].flatMap((source) => [...source.matchAll(/\b(?:R-\d{3}|[CDFLST]\d{2})\b/g)].map(([id]) => id))
    expect(heldNow.filter((id) => !inNames.includes(id))).toEqual([])
    expect(heldNow.length).toBeGreaterThan(50)
  })
})

/** `R-001`, but `C01`. */
function ids(letter: string, from: number, to: number): string[] {
  const idOf = (number: number) => (letter === 'R' ? `R-${String(number).padStart(3, '0')}` : `${letter}${String(number).padStart(2, '0')}`)
  return Array.from({ length: to - from + 1 }, (_, index) => idOf(from + index))
}

function rowsOf(page: string): Map<string, string> {
  return new Map([...page.matchAll(/^\| ((?:R-\d{3}|[CDFLST]\d{2})) +\| (.+) \|$/gm)].map(([, id, row]) => [String(id), String(row)]))
}
