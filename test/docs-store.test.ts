import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { expect, test } from 'vitest'
import { createAuthTables, createKnexStore } from '../src'
import { databases } from './support/databases'

const root = join(import.meta.dirname, '..')

/** `npx vitest run --config test/vitest.config.mts test/docs-store.test.ts -u` writes the page anew. */
test('docs/store-contract.md says of every record and verb what src/store/auth-store.ts says', async () => {
  await expect(pageOf(readFileSync(join(root, 'src/store/auth-store.ts'), 'utf8'))).toMatchFileSnapshot(
    join(root, 'docs/store-contract.md'),
  )
})

test('docs/store.md names the default columns of the users table, as createAuthTables makes them', async () => {
  const [sqlite] = await databases()
  const database = await sqlite?.open({ memory: true })
  if (!database) throw new Error('no database answers')
  try {
    await createAuthTables(database.knex)
    const columns = Object.keys(await database.knex('auth_users').columnInfo())
    const { users } = createKnexStore({ knex: database.knex })
    const [, chapter = ''] =
      /^### Default columns of the users table$(.*?)^###/ms.exec(readFileSync(join(root, 'docs/store.md'), 'utf8')) ?? []
    const rows = [...chapter.matchAll(/^\| `(\w+)` \| `(\w+)` \|/gm)].map(([, field = '', column = '']) => ({ field, column }))
    expect(rows.map(({ field }) => field).sort()).toEqual([...users.fields].sort())
    expect(rows.map(({ column }) => column).sort()).toEqual(columns.sort())
    for (const { field, column } of rows) expect(column.replaceAll('_', '')).toBe(field.toLowerCase())
  } finally {
    await database.close()
  }
})

const intro = `# The store contract

The interface of \`createAuthRouter({ store })\`. \`createKnexStore\` implements it. For a database that Knex does not support, write your own adapter.
\`storeContract()\` of \`doorward/testing\` tests an adapter against every sentence here; [store](store.md#an-adapter-of-your-own) says how to run it.
`

function pageOf(source: string): string {
  const file = ts.createSourceFile('auth-store.ts', source, ts.ScriptTarget.Latest, true)
  const interfaces = file.statements.filter(ts.isInterfaceDeclaration).filter(({ members }) => members.length > 0)
  return [intro, ...interfaces.map((declaration) => chapterOf(declaration, file))].join('\n')
}

function chapterOf(declaration: ts.InterfaceDeclaration, file: ts.SourceFile): string {
  const about = sentencesOf(declaration)
  const rows = declaration.members.map(
    (member) => `| \`${signatureOf(member, file)}\` | ${sentencesOf(member).replace(/\s+/g, ' ').replaceAll('|', '\\|')} |`,
  )
  return [`## ${declaration.name.text}`, ...(about === '' ? [] : ['', about]), '', '| | |', '|---|---|', ...rows, ''].join('\n')
}

function signatureOf(member: ts.TypeElement, file: ts.SourceFile): string {
  const text = member.getText(file).replace(/\/\*\*[\s\S]*?\*\//g, '')
  return text
    .replace(/\s+/g, ' ')
    .replace(/^readonly /, '')
    .replaceAll('|', '\\|')
    .trim()
}

function sentencesOf(node: ts.Node): string {
  const parts = ts
    .getJSDocCommentsAndTags(node)
    .flatMap((comment) => [
      ts.getTextOfJSDocComment(comment.comment) ?? '',
      ...('tags' in comment
        ? [...(comment.tags ?? [])].map((tag) => `@${tag.tagName.text} ${ts.getTextOfJSDocComment(tag.comment) ?? ''}`)
        : []),
    ])
  return parts.join(' ').trim()
}
