import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { ensureBuilt, root } from './built-package'

/** The comments of the declarations are what an editor shows of us. */

beforeAll(ensureBuilt, 120_000)

/** Papers of ours that no user has, and names that nothing exports. */
const unseen =
  /\bcontract[- ](section|part|\d)|\bsection 2\d\.\d|\b2\d\.\d\.\d\b|\bcontract's|\bspecification(?! of)|specification\.md|security bar|\bR-\d{3}\b|`clientKey`|\bdetails? \d+\.\d+|\bissue #?\d+/i

function commentsIn(text: string): string[] {
  return [...text.matchAll(/\/\*\*[\s\S]*?\*\//g)].map(([comment]) => comment.replaceAll(/\s*\n\s*\*?\s*/g, ' '))
}

test('no comment of the declarations speaks of what a user cannot see', () => {
  const files = readdirSync(join(root, 'dist'), { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.d.ts'))
  const found = files.flatMap((path) =>
    commentsIn(readFileSync(join(root, 'dist', path), 'utf8'))
      .filter((comment) => unseen.test(comment))
      .map((comment) => `${path}: ${comment}`),
  )

  expect(files.length).toBeGreaterThan(100)
  expect(found).toEqual([])
})

test('no declaration needs the types of a library that an app may not have', () => {
  const files = readdirSync(join(root, 'dist'), { recursive: true, encoding: 'utf8' }).filter((path) => /\.d\.m?ts$/.test(path))
  const found = files.filter((path) =>
    /from ['"](kysely|drizzle-orm|@prisma\/|pg|mysql2|better-sqlite3)/.test(readFileSync(join(root, 'dist', path), 'utf8')),
  )

  expect(found).toEqual([])
})

test('such a comment would be seen, also over the end of a line', () => {
  const comments = commentsIn(
    '/** As RFC 7519 says. */ /**\n * As it must be (contract\n * section 8).\n */ /** R-089 */ /** (contract-3, 9.6) */ /** (contract 24.6) */',
  )

  expect(comments.filter((comment) => unseen.test(comment))).toHaveLength(4)
})
