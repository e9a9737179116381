import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type Audit, unexplained } from './support/audit'

const root = join(import.meta.dirname, '..')
const page = readFileSync(join(root, 'docs/dependencies.md'), 'utf8')
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Record<string, Record<string, string>>

describe('docs/dependencies.md', () => {
  test('lists every runtime dependency in the range of package.json, with a reason, and no other', () => {
    expect(versions(table('Run time'))).toEqual(manifest.dependencies)
  })

  test('lists every peer in the range of package.json, and no other', () => {
    expect(versions(table('Peers'))).toEqual(manifest.peerDependencies)
  })

  test('gives a reason in every row', () => {
    const rows = [...table('Run time'), ...table('Peers'), ...table('Risky components')]

    expect(rows.filter((cells) => cells.length !== 3 || (cells[2] ?? '').length < 40)).toEqual([])
  })

  test('names only code that is there', () => {
    const paths = [...page.matchAll(/`((?:src|test)\/[^`]+)`/g)].map(([, path = '']) => path)

    expect(paths.length).toBeGreaterThan(5)
    expect(paths.filter((path) => !existsSync(join(root, path)))).toEqual([])
  })

  test('names every risky component, in the version that is installed', () => {
    const risky = table('Risky components').map(([name = '']) => name.split(' ').slice(0, 2))
    const installed = risky.map(([name = '']) => [name, versionOf(name)])

    expect(risky).toEqual(installed)
    expect(risky.map(([name]) => name)).toEqual(expect.arrayContaining(['passport-oauth2', 'oauth', 'uid2', 'passport']))
  })

  test('names only development packages that are installed', () => {
    const named = table('Development').flatMap(([names]) => (names ?? '').split(', ').map((name) => name.replace(/ \d+$/, '')))

    expect(named.filter((name) => manifest.devDependencies?.[name] === undefined)).toEqual([])
  })
})

test('a finding of `npm audit` is explained by its own id, and only where the page speaks of those that apply', () => {
  const [known, unknown] = ['GHSA-aaaa-bbbb-cccc', 'GHSA-dddd-eeee-ffff'].map((id) => ({ url: `https://github.com/advisories/${id}` }))
  const found = { vulnerabilities: { undici: { via: [known, unknown] }, doorward: { via: ['undici'] } } } as Audit
  const text =
    '| undici | 7 | GHSA-dddd-eeee-ffff |\n\n## Advisories that apply\n\nGHSA-aaaa-bbbb-cccc: not reached.\n\n## More\n\nGHSA-dddd-eeee-ffff\n'
  expect(unexplained(found, text)).toEqual(['GHSA-dddd-eeee-ffff'])
  expect(unexplained(found, text.split('\n## More')[0] ?? '')).toEqual(['GHSA-dddd-eeee-ffff'])
  expect(unexplained(found, '')).toHaveLength(2)
  expect(unexplained({ vulnerabilities: {} }, page)).toEqual([])
  expect(page).toContain('\n## Advisories that apply\n')
})

test('every development dependency has an exact version', () => {
  const pins = Object.values(manifest.devDependencies ?? {})

  expect(pins.filter((pin) => !/^(npm:(@[\w-]+\/)?[\w-]+@)?\d+\.\d+\.\d+$/.test(pin))).toEqual([])
})

test('every dependency but argon2 is a range within its major that begins with the version in the lock file', () => {
  const { argon2, ...ranges } = manifest.dependencies ?? {}

  expect(argon2).toMatch(/^\d+\.\d+\.\d+$/)
  expect(ranges).toEqual(Object.fromEntries(Object.keys(ranges).map((name) => [name, `^${versionOf(name)}`])))
})

test('the lock file names no registry', () => {
  const lock = readFileSync(join(root, 'package-lock.json'), 'utf8')

  expect(lock.match(/"resolved":/g)).toBeNull()
  expect(lock.match(/\bregistry\b/g)).toBeNull()
})

// A registry that does not offer every platform's build makes npm leave it out of the lock, and `npm ci` then refuses.
test('the lock file holds every optional package its packages name, for each platform', () => {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as { packages: Record<string, Locked> }
  const named = Object.entries(packages).flatMap(([path, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies).map((name) => ({ path, name })),
  )

  expect(named.length).toBeGreaterThan(20)
  expect(named.filter(({ path, name }) => !packages[`node_modules/${name}`] && !packages[`${path}/node_modules/${name}`])).toEqual([])
})

interface Locked {
  optionalDependencies?: Record<string, string>
}

function versionOf(name: string): string {
  return (JSON.parse(readFileSync(join(root, 'node_modules', name, 'package.json'), 'utf8')) as { version: string }).version
}

/** The cells of the first table below a heading, without its head. */
function table(heading: string): string[][] {
  const section = page.split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? ''
  const lines = section.split('\n').filter((line) => line.startsWith('|'))
  return lines.slice(2).map((line) =>
    line
      .slice(1, -1)
      .split(/(?<!\\)\|/)
      .map((cell) => cell.trim().replaceAll('\\|', '|')),
  )
}

function versions(rows: string[][]): Record<string, string> {
  return Object.fromEntries(rows.map(([name = '', version = '']) => [name, version]))
}
