import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { describe, expect, test } from 'vitest'
import { eventFields } from '../src/core/events'

const root = join(import.meta.dirname, '..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')

/** Event name -> names of its payload's fields. */
type Events = Record<string, string[]>

const documented = rowsOf(read('docs/events.md'))
const typed = payloadsOf(read('src/core/events.ts'))
const emitted = new Set(
  readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .flatMap((file) => [...read(join('src', file)).matchAll(/\bevents\.emit\(\s*'([\w.]+)'/g)].map(([, name]) => name)),
)

describe('docs/events.md', () => {
  test('has one row for every name of AuthEventPayloads, with exactly its fields, and no other', () => {
    expect(fieldsOf(documented)).toEqual(typed)
    expect(Object.keys(typed).length).toBeGreaterThan(9)
  })

  test('eventFields, which the audit log and the metrics go by, is the same list', () => {
    expect(eventFields).toEqual(typed)
  })

  test('the names are those of contract sections 12, 16, 17, 24, 25, 29, 31 and 32, a closed list', () => {
    const closed =
      'signup activation login login.failed challenge logout refresh.reused session.revoked password.changed email.changed email.verified ' +
      'identity.linked identity.unlinked mfa.enrolled mfa.disabled mfa.failed recovery_code.used passkey.added passkey.removed passkey.cloned throttled account.deactivated ' +
      'provider.failed mail.failed ' +
      'email_login.requested login.new_device device.trusted device.untrusted task.required task.done password.expired ' +
      'invitation.created invitation.revoked invitation.accepted ' +
      'account.taken_over admin.granted admin.revoked users.imported undo.used undo.conflict purge.done ' +
      'signup.flood approval.requested approval.granted approval.declined ' +
      'account.deletion_requested account.deletion_cancelled account.deleted'

    expect(Object.keys(eventFields).sort()).toEqual(closed.split(' ').sort())
  })

  test('says "not yet sent" of exactly those that nothing emits', () => {
    const sent = Object.entries(documented).flatMap(([name, { isSent }]) => (isSent ? [name] : []))

    expect(sent.sort()).toEqual([...emitted].sort())
  })

  test('the readers read what they claim to', () => {
    expect(fieldsOf(rowsOf('| `a.b` | not yet sent: x | `one`, `two` |'))).toEqual({ 'a.b': ['one', 'two'] })
    expect(payloadsOf("export interface AuthEventPayloads { 'a.b': { one: string; two?: number } }")).toEqual({ 'a.b': ['one', 'two'] })
  })
})

function rowsOf(page: string): Record<string, { fields: string[]; isSent: boolean }> {
  const rows = page.split('\n').flatMap((line) => {
    const [, name, when, fields] = /^\| `([a-z._]+)` \| (.+) \| ((?:`\w+`(?:, )?)+) \|$/.exec(line) ?? []
    if (!name || !when || !fields) return []
    return [
      [name, { fields: [...fields.matchAll(/`(\w+)`/g)].map(([, field]) => String(field)), isSent: !when.startsWith('not yet sent') }],
    ]
  })
  return Object.fromEntries(rows)
}

function fieldsOf(rows: ReturnType<typeof rowsOf>): Events {
  return Object.fromEntries(Object.entries(rows).map(([name, { fields }]) => [name, fields]))
}

/** The types are gone at run time, so the source is read. */
function payloadsOf(source: string): Events {
  const file = ts.createSourceFile('events.ts', source, ts.ScriptTarget.Latest)
  const payloads = file.statements.find((statement) => ts.isInterfaceDeclaration(statement) && statement.name.text === 'AuthEventPayloads')
  if (!payloads || !ts.isInterfaceDeclaration(payloads)) throw new Error('src/core/events.ts has no interface AuthEventPayloads')
  return Object.fromEntries(payloads.members.filter(ts.isPropertySignature).map((member) => [textOf(member.name), fieldNames(member.type)]))
}

function fieldNames(type: ts.TypeNode | undefined): string[] {
  return type && ts.isTypeLiteralNode(type) ? type.members.filter(ts.isPropertySignature).map((field) => textOf(field.name)) : []
}

function textOf(name: ts.PropertyName): string {
  return ts.isIdentifier(name) || ts.isStringLiteral(name) ? name.text : ''
}
