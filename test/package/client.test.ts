import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import ts from 'typescript'
import { beforeAll, expect, test } from 'vitest'
import { ensureBuilt, root } from './built-package'

beforeAll(() => ensureBuilt(), 300_000)

const read = (name: string) => readFileSync(join(root, `dist/client/${name}.js`))

test.each([
  ['client', 5_120],
  ['passkeys', 3_072],
])('doorward/client: %s.js is at most %i bytes, minified and gzipped', (name, most) => {
  expect(gzipSync(read(name)).length).toBeLessThanOrEqual(most)
})

test('the client is one file without imports, in the syntax of ES2020; it loads the part for passkeys when it is needed', () => {
  const text = read('client').toString()
  const { importedFiles } = ts.preProcessFile(text, true, true)
  expect(importedFiles.map(({ fileName }) => fileName)).toEqual(['./passkeys.js'])
  expect(text).toContain("import('./passkeys.js')")
  expect(text.match(/\bimport\b/g)).toHaveLength(1)
  const later = /\?\?=|\|\|=|&&=|\bstatic\s*\{|#\w+\s*[=(;]|\.at\(|hasOwn\(|replaceAll\(|structuredClone/
  expect(text).not.toMatch(later)
})

test('Node imports each entry by the name of the package', () => {
  const script = `
    for (const name of ['client', 'client/passkeys', 'client/captcha', 'client/admin', 'react']) console.log(Object.keys(await import('doorward/' + name)).length)
    const { createAuthClient } = await import('doorward/client')
    const auth = createAuthClient({ baseUrl: 'http://127.0.0.1:9/auth' })
    auth.subscribe(({ status }) => console.log(status))
  `
  // It ends although the client tries again: a client keeps no process alive.
  const printed = execFileSync(process.execPath, ['--input-type=module', '-e', script], { cwd: root, encoding: 'utf8', timeout: 20_000 })
  expect(printed.split('\n')).toEqual(['2', '3', '1', '2', '6', 'loading', ''])
})
