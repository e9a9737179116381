import { join } from 'node:path'
import ts from 'typescript'
import { describe, expect, test } from 'vitest'
import { diagnosticsOf, programOf } from '../support/compile'

/** A page's project: the libraries that a browser of 2020 has, and no types of Node. */
const options: ts.CompilerOptions = {
  lib: ['lib.es2020.d.ts', 'lib.dom.d.ts'],
  types: [],
  target: ts.ScriptTarget.ES2020,
  skipLibCheck: false,
}

const preamble = `
import { createAuthClient, AuthClientError } from 'doorward/client'
import { createAdminClient } from 'doorward/client/admin'
const auth = createAuthClient({ baseUrl: '/auth' })
declare const error: AuthClientError
export const used = [
`

/** The usage, and what the message names. */
const wrong: readonly (readonly [string, RegExp])[] = [
  ['createAuthClient({})', /'baseUrl' is missing/],
  ["createAuthClient({ baseUrl: '/auth', delivery: 'cookies' })", /"cookies"/],
  ["createAuthClient({ baseUrl: '/auth', origins: [] })", /'origins' does not exist/],
  ["auth.logIn({ email: 'a' })", /'password' is missing/],
  ['auth.logIn({ email: 1, password: "b" })', /'number' is not assignable to type 'string'/],
  ["auth.logIn({ email: 'a', password: 'b', remeber: true })", /'remeber'/],
  ["auth.login({ email: 'a', password: 'b' })", /Did you mean 'logIn'/],
  ["auth.logIn({ email: 'a', password: 'b' }).then((result) => result.user)", /'user' does not exist/],
  ['auth.secondFactor.verify({})', /not assignable/],
  ['auth.sessions.revoke()', /Expected 1 arguments/],
  ['auth.sessions.revokeOthers({ all: true })', /'true' is not assignable to type 'never'/],
  ['auth.state.user.email', /possibly 'null'/],
  ["error.code === 'UNAUTHORISED'", /no overlap/],
  ["auth.account.restore({ restore_token: 'a' })", /'restore_token' does not exist/],
  ['auth.account.delete({ password: "a" })', /'password' does not exist/],
  ['auth.account.export().then(({ keys }) => keys)', /'keys' does not exist/],
  ['auth.invitations.redeem({})', /'token' is missing/],
  ["auth.tasks.newPassword({ password: 'a' })", /'password' does not exist/],
  ['auth.trustedDevices.remove()', /Expected 1 arguments/],
  ['auth.sessions.open()', /'open' does not exist/],
  ["error.code === 'DELETED'", /no overlap/],
  ["createAdminClient(auth).invitations.create({ mail: 'a' })", /'mail' does not exist/],
  ["createAdminClient(auth).approve('a', { note: 'b' })", /'string' is not assignable to type 'never'/],
  ["createAdminClient(auth).get('a').then((user) => new Date(user.deletion_requested_at))", /No overload matches|undefined/],
  ['createAdminClient(auth).deactivate({ id: 1 })', /not assignable to parameter of type 'string'/],
]

const right: readonly string[] = [
  "createAuthClient({ baseUrl: 'https://api.example.com/auth', delivery: 'bearer', storage: { get: (key) => localStorage.getItem(key), set: (key, value) => localStorage.setItem(key, value), remove: (key) => localStorage.removeItem(key) } })",
  "createAuthClient({ baseUrl: '/auth', onReauthenticate: async ({ methods }) => methods.includes('password') })",
  "auth.logIn({ email: 'a', password: 'b' }).then((result) => (result.kind === 'session' ? result.user.email : null))",
  "auth.signUp({ email: 'a', password: 'b' }).then((result) => result.kind === 'activation_required')",
  'auth.secondFactor.verify({ passkey: true })',
  "auth.secondFactor.verify({ code: '123456' })",
  'auth.logOut()',
  'auth.logOut({ all_sessions: true })',
  "auth.fetch('/api/orders', { method: 'POST', body: new FormData() })",
  "auth.providers.logIn('google', { returnTo: '/orders' })",
  "error.code === 'UNAUTHORIZED' || error.code === 'NETWORK_ERROR' || error.code === null",
  'auth.subscribe(({ status, user }) => console.log(status, user?.email))',
  "auth.signUp({ email: 'a' })", // of a router without passwords
  'auth.account.delete({ passkey: true }).then((answer) => answer?.deletes_at)',
  "auth.account.restore({ token: 'a' })",
  "auth.invitations.redeem({ token: 'a' })",
  "auth.tasks.complete('terms', { accepted: true }).then(({ kind }) => kind)",
  "auth.trustedDevices.remove('a')",
  "error.code === 'DELETION_PENDING' && error.details['restore_token']",
  "createAdminClient(auth).get('a').then(({ fields }) => fields?.['plan'])",
  "createAdminClient(auth).decline('a')",
  "createAdminClient(auth).invitations.create({ email: 'a', uses: 3 }).then(({ url }) => url)",
  'createAdminClient(auth).list({ limit: 10 })',
]

const folder = join(import.meta.dirname, 'made-up')
const usages = [...wrong.map(([usage]) => usage), ...right]
const units = new Map(usages.map((usage, place) => [join(folder, `${place}.ts`), `${preamble}${usage}]\n`]))
const program = programOf(units, options)
const found = diagnosticsOf(program, units)

function messagesOf(usage: string): string[] {
  const path = join(folder, `${usages.indexOf(usage)}.ts`)
  return found.filter(({ file }) => file?.fileName === path).map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, ' '))
}

describe('the types of doorward/client', () => {
  test.each(wrong)('refuse %s', (usage, message) => {
    expect(messagesOf(usage).join('\n')).toMatch(message)
  })

  test.each(right)('take %s', (usage) => {
    expect(messagesOf(usage)).toEqual([])
  })

  test('and its sources compile with the libraries ES2020 and DOM alone', () => {
    const own = program.getSourceFiles().filter(({ fileName }) => /\/src\/client\//.test(fileName))
    expect(own.length).toBeGreaterThan(5)
    expect(own.flatMap((file) => [...program.getSemanticDiagnostics(file)].map(({ messageText }) => messageText))).toEqual([])
  })
})
