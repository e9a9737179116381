import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { expect, test } from 'vitest'

const root = path.join(import.meta.dirname, '../..')

test('the app in docs/getting-started.md is examples/minimal.ts', async () => {
  const page = await readFile(path.join(root, 'docs/getting-started.md'), 'utf8')
  const example = await readFile(path.join(root, 'examples/minimal.ts'), 'utf8')
  const blocks = [...page.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, code]) => code)
  expect(blocks).toContain(example)
})

test('docs/getting-started.md begins with the app of README.md', async () => {
  const [readme = '', page = ''] = await Promise.all(
    ['README.md', 'docs/getting-started.md'].map((name) => readFile(path.join(root, name), 'utf8')),
  )
  const first = (text: string) => /```js\n([\s\S]*?)```/.exec(text)?.[1]
  expect(first(page)).toBe(first(readme))
})
