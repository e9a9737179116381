/**
 * Glewlwyd, an OpenID provider written in C (Debian's package `glewlwyd`), with a database in a folder of its own.
 *
 *   const glewlwyd = await startGlewlwyd({ redirectUri })
 *   const issuer = await glewlwyd.sign({ name: 'ec', keyType: 'ecdsa', bits: '256', privateKey })
 *   const back = await glewlwyd.visit(location)
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { createPublicKey, type KeyObject } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import Database from 'better-sqlite3'
import { freePort } from './free-port'

export interface Glewlwyd {
  /** Makes an issuer that signs like this, and returns its URL. */
  sign(issuer: GlewlwydIssuer): Promise<string>
  /** A browser in which Ana is signed in follows the address: where it is sent back to. */
  visit(location: string): Promise<URL>
  close(): Promise<void>
}

export interface GlewlwydIssuer {
  name: string
  keyType: 'rsa' | 'rsa-pss' | 'ecdsa' | 'eddsa'
  /** The size of the digest. */
  bits: '256' | '384' | '512'
  privateKey: KeyObject
}

export const glewlwydClient = { clientId: 'doorward', clientSecret: 'a-secret-of-43-characters-that-nobody-knows' }
export const glewlwydPerson = { username: 'ana', name: 'Ana', email: 'ana@example.com', password: 'three quiet green rivers' }

const program = '/usr/bin/glewlwyd'
const schema = '/usr/share/doc/glewlwyd/database/init.sqlite3.sql.gz'
const modules = '/usr/lib/glewlwyd'

export const hasGlewlwyd = existsSync(program) && existsSync(schema)

export async function startGlewlwyd({ redirectUri }: { redirectUri: string }): Promise<Glewlwyd> {
  const folder = mkdtempSync(join(tmpdir(), 'doorward-glewlwyd-'))
  const origin = `http://127.0.0.1:${await freePort()}`
  new Database(join(folder, 'glewlwyd.db')).exec(gunzipSync(readFileSync(schema)).toString()).close()
  writeFileSync(join(folder, 'glewlwyd.conf'), configuration(origin, folder))
  const child = spawn(program, [`--config-file=${join(folder, 'glewlwyd.conf')}`], { stdio: 'ignore' })
  const close = async () => {
    await stop(child)
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    const administrator = await signIn(origin, { username: 'admin', password: 'password' })
    const ask = (path: string, body: object, method = 'POST') => send(origin, administrator, { method, path, body })
    await ask('/client/', {
      ...{ client_id: glewlwydClient.clientId, name: 'doorward', confidential: true, enabled: true, scope: [] },
      ...{ password: glewlwydClient.clientSecret, client_secret: glewlwydClient.clientSecret },
      ...{ redirect_uri: [redirectUri], authorization_type: ['code'] },
      token_endpoint_auth_method: ['client_secret_basic', 'client_secret_post'],
    })
    await ask('/user/', { ...glewlwydPerson, scope: ['openid'], enabled: true })
    const person = await signIn(origin, glewlwydPerson)
    await send(origin, person, { method: 'PUT', path: `/auth/grant/${glewlwydClient.clientId}`, body: { scope: 'openid' } })
    return {
      async sign(issuer) {
        const url = `${origin}/api/${issuer.name}`
        await ask('/mod/plugin/', { module: 'oidc', name: issuer.name, display_name: issuer.name, parameters: parametersOf(url, issuer) })
        return url
      },
      async visit(location) {
        // `g_continue` is what the provider's own page adds when the person has said yes.
        const response = await fetch(`${location}&g_continue`, { redirect: 'manual', headers: { cookie: person } })
        return new URL(response.headers.get('location') ?? `none:${response.status}`)
      },
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

function parametersOf(url: string, { keyType, bits, privateKey }: GlewlwydIssuer): object {
  return {
    ...{ iss: url, 'jwt-type': keyType, 'jwt-key-size': bits },
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }),
    cert: createPublicKey(privateKey).export({ type: 'spki', format: 'pem' }),
    ...{ 'access-token-duration': 3600, 'refresh-token-duration': 3600, 'code-duration': 600, 'refresh-token-rolling': true },
    ...{ 'auth-type-code-enabled': true, 'auth-type-refresh-enabled': true, 'subject-type': 'public', 'jwks-show': true },
    ...{ 'name-claim': 'mandatory', 'email-claim': 'mandatory', 'scope-claim': 'no', claims: [], scope: [] },
    ...{ 'name-claim-scope': [], 'email-claim-scope': [], 'allow-non-oidc': false },
    ...{ 'pkce-allowed': true, 'pkce-required': true, 'pkce-method-plain-allowed': false },
  }
}

function configuration(origin: string, folder: string): string {
  const paths = Object.entries({
    user: 'user',
    user_middleware: 'user_middleware',
    client: 'client',
    user_auth_scheme: 'scheme',
    plugin: 'plugin',
  })
  return [
    `port=${new URL(origin).port}`,
    'bind_address="127.0.0.1"',
    `external_url="${origin}"`,
    ...['login_url="login.html"', 'api_prefix="api"', 'log_mode="console"', 'log_level="NONE"'],
    ...['cookie_secure=0', 'session_key="SESSION"', 'login_api_enabled=true', 'hash_algorithm="SHA512"'],
    ...['admin_session_authentication="cookie"', 'profile_session_authentication="cookie"'],
    ...['admin_scope="g_admin"', 'profile_scope="g_profile"', `static_files_path="${folder}"`],
    ...paths.map(([kind, name]) => `${kind}_module_path="${join(modules, name)}"`),
    // It asks for the files of a certificate although it is told to use none.
    ...['use_secure_connection=false', 'secure_connection_key_file="none"', 'secure_connection_pem_file="none"'],
    `database={type="sqlite3";path="${join(folder, 'glewlwyd.db')}";};`,
    '',
  ].join('\n')
}

/** Returns the session cookie. Waits until the program answers. */
async function signIn(origin: string, { username, password }: { username: string; password: string }): Promise<string> {
  const body = JSON.stringify({ username, password })
  const headers = { 'content-type': 'application/json' }
  for (let left = 100; ; left--) {
    const response = await fetch(`${origin}/api/auth/`, { method: 'POST', headers, body }).catch(() => null)
    const cookie = response?.headers.getSetCookie()[0]?.split(';')[0]
    if (response?.ok && cookie) return cookie
    if (left === 0 || response) throw new Error(`Glewlwyd does not let ${username} in: ${response?.status ?? 'no answer'}`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

async function send(origin: string, cookie: string, { method, path, body }: { method: string; path: string; body: object }): Promise<void> {
  const headers = { 'content-type': 'application/json', cookie }
  const response = await fetch(`${origin}/api${path}`, { method, headers, body: JSON.stringify(body) })
  if (!response.ok) throw new Error(`Glewlwyd answers ${response.status} to ${path}: ${await response.text()}`)
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.pid === undefined) return
  const exited = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGKILL') // it waits for connections that are kept alive
  await exited
}
