import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { namedTests, quickSuites } from './suites'

const files = readdirSync(import.meta.dirname, { recursive: true, encoding: 'utf8' })
const tests = files.filter((path) => path.endsWith('.test.ts') && !path.includes('node_modules')).map((path) => `test/${path}`)

test('each name in the lists of suites.ts finds a test', () => {
  expect(namedTests.length).toBeGreaterThan(40)
  expect(namedTests.filter((name) => !tests.some((path) => matches(path, name)))).toEqual([])
})

test('the quick suite leaves out every test of two processes', () => {
  const textOf = (path: string) => readFileSync(join(import.meta.dirname, '..', path), 'utf8')
  const ofTwoProcesses = tests.filter((path) => /^(import|}) .*two-processes'$/m.test(textOf(path)))
  const [{ without = [] } = {}] = quickSuites([])

  expect(ofTwoProcesses.length).toBeGreaterThan(5)
  expect(ofTwoProcesses.filter((path) => !without.some((name) => matches(path, name)))).toEqual([])
})

/** As vitest reads a name: a file, a folder or a pattern. */
function matches(path: string, name: string): boolean {
  const pattern = name.replaceAll('.', '\\.').replaceAll('**', '.+').replaceAll('*', '[^/]+')
  return new RegExp(`^${pattern}(/|$)`).test(path)
}
