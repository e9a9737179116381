import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import * as errors from '../src/core/errors'

const root = join(import.meta.dirname, '..')

interface Row {
  status: number
  code: string
  className: string
  isSent: boolean
}

type ErrorClass = typeof errors.AppError

/** The catalogue of src/core/errors.ts. `AppError` is the base, with no code of its own. */
const catalogue = new Map(
  Object.entries(errors).flatMap(([name, value]): [string, ErrorClass][] =>
    value.prototype instanceof errors.AppError ? [[name, value as ErrorClass]] : [],
  ),
)
const rows = rowsOf(readFileSync(join(root, 'docs/errors.md'), 'utf8'))

describe('docs/errors.md', () => {
  test('has one row for every error of the catalogue, with its status, code and class, and no other', () => {
    const documented = rows.map(({ status, code, className }) => `${status} ${code} ${className}`)
    const real = [...catalogue].map(([name, type]) => `${type.status} ${type.code} ${name}`)

    expect([...documented].sort()).toEqual([...real].sort())
    expect(documented.length).toBeGreaterThan(40)
  })

  test('is in the order of the statuses', () => {
    const statuses = rows.map(({ status }) => status)

    expect(statuses).toEqual([...statuses].sort((a, b) => a - b))
  })

  test('says "not yet sent" of exactly those that no code of ours throws', () => {
    const source = sourceOutsideCatalogue()
    const thrown = [...catalogue.keys()].filter((name) => new RegExp(`\\b${name}\\b`).test(source))

    expect(
      rows
        .filter(({ isSent }) => isSent)
        .map(({ className }) => className)
        .sort(),
    ).toEqual(thrown.sort())
  })

  test('a row that is missing, or wrong in one place, would be seen', () => {
    expect(rowsOf('| 401 | A_CODE | not yet sent: never | `AError` |')).toEqual([
      { status: 401, code: 'A_CODE', className: 'AError', isSent: false },
    ])
    expect(rowsOf('no table here')).toEqual([])
  })
})

function rowsOf(page: string): Row[] {
  return page.split('\n').flatMap((line) => {
    const [, status, code, when, className] = /^\| (\d{3}) \| ([A-Z_]+) \| (.+) \| `(\w+)` \|$/.exec(line) ?? []
    if (!status || !code || !when || !className) return []
    return [{ status: Number(status), code, className, isSent: !when.startsWith('not yet sent') }]
  })
}

/** Code only: a name in a comment or an import throws nothing. */
function sourceOutsideCatalogue(): string {
  const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' }).filter(
    (file) => file.endsWith('.ts') && file !== 'errors.ts',
  )
  const text = files.map((file) => readFileSync(join(root, 'src', file), 'utf8')).join('\n')
  return text.replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '').replace(/^import [\s\S]*?from '.*'$/gm, '')
}
