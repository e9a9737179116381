import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { areaPageNames, linkPageNames } from '../src/core/templates'

const page = readFileSync(join(import.meta.dirname, '../docs/pages.md'), 'utf8')

function namesIn(row: string): string[] {
  const [, cell = ''] = page.split(`\n| ${row} | `)
  return [...(cell.split('|')[0] ?? '').matchAll(/`(\w+)`/g)].map(([, name = '']) => name)
}

test('docs/pages.md names every page that can be replaced, and no other', () => {
  expect(namesIn('behind links')).toEqual([...linkPageNames])
  expect(namesIn('of the account area')).toEqual([...areaPageNames])
})
