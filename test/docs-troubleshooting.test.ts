import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import {
  AccountInactiveError,
  InvalidTokenError,
  MfaRequiredError,
  ReauthenticationRequiredError,
  TokenExpiredError,
} from '../src/core/errors'

const root = join(import.meta.dirname, '..')
const page = readFileSync(join(root, 'docs/troubleshooting.md'), 'utf8')
const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts'))
  .map((path) => readFileSync(join(root, 'src', path), 'utf8'))

interface Entry {
  anchor: string
  text: string
}

const entries: Entry[] = page
  .split(/^### /m)
  .slice(1)
  .map((section) => {
    const [heading = '', ...lines] = section.split('\n')
    return { anchor: slug(heading), text: lines.join('\n') }
  })

/** As GitHub makes it. */
function slug(heading: string): string {
  return heading
    .trim()
    .toLowerCase()
    .replace(/[^\w\- ]/g, '')
    .replaceAll(' ', '-')
}

/** In a call, or as the entry of a notice. */
const used = new Set(
  sources.flatMap((text) => [...text.matchAll(/(?:seeTroubleshooting\(|\bentry: )'([^']+)'/g)].map(([, anchor]) => anchor ?? '')),
)

const tellsWhy = /Nothing is logged/

test('every address that a log line or a boot error names is an entry of the page', () => {
  expect(used.size).toBeGreaterThan(15)
  expect([...used].filter((anchor) => !entries.some((entry) => entry.anchor === anchor))).toEqual([])
})

test('every entry is named by a log line or a boot error, or says why it is not', () => {
  expect(entries.filter(({ anchor, text }) => !used.has(anchor) && !tellsWhy.test(text)).map(({ anchor }) => anchor)).toEqual([])
  expect(entries.filter(({ anchor, text }) => used.has(anchor) && tellsWhy.test(text)).map(({ anchor }) => anchor)).toEqual([])
})

test('the entry of the guards explains every reason that one can log, and no other', () => {
  const text = entries.find(({ anchor }) => anchor === 'a-401-or-403-that-you-cannot-explain')?.text ?? ''
  const explained = [...text.matchAll(/^\| ((?:`\w+`(?:, )?)+) \|/gm)].flatMap(([, words = '']) => words.match(/\w+/g) ?? [])
  const inErrors = sources.flatMap((source) =>
    [...source.matchAll(/Error\(\{ (?:cause: \w+, )?reason: ([^}]+) \}\)/g)].map(([, value = '']) => value),
  )
  const named = inErrors.flatMap((value) => [...value.matchAll(/'(\w+)'/g)].map(([, word = '']) => word))
  const [, csrf = ''] = sources.map((source) => /type CsrfReason = (.+)/.exec(source)).find((found) => found !== null) ?? []
  /** Without a reason of their own it is the code, in lower case. */
  const byCode = [InvalidTokenError, TokenExpiredError, AccountInactiveError, MfaRequiredError, ReauthenticationRequiredError].map(
    ({ code }) => code.toLowerCase(),
  )
  const known = new Set([...named, ...(csrf.match(/\w+/g) ?? []), ...byCode])
  expect(named.length).toBeGreaterThan(10)
  expect([...new Set(explained)].sort()).toEqual([...known].sort())
})

test('every entry has a symptom, a cause and a fix, and an address of its own', () => {
  expect(
    entries.filter(({ text }) => !/\*\*Symptom\.\*\*[\s\S]+\*\*Cause\.\*\*[\s\S]+\*\*Fix\.\*\*/.test(text)).map(({ anchor }) => anchor),
  ).toEqual([])
  expect(new Set(entries.map(({ anchor }) => anchor)).size).toBe(entries.length)
})
