import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { expect, test } from 'vitest'

const root = path.join(import.meta.dirname, '../..')

test('the app in docs/getting-started.md is examples/minimal.ts', async () => {
  const page = await readFile(path.join(root, 'docs/getting-started.md'), 'utf8')
  const example = await readFile(path.join(root, 'examples/minimal.ts'), 'utf8')
  const [, firstBlock] = /```ts\n([\s\S]*?)```/.exec(page) ?? []
  expect(firstBlock).toBe(example)
})
