/** Starts the OpenID provider of authlib-provider.py, a library in Python that nobody here wrote. */
import { execFileSync, spawn } from 'node:child_process'
import { createPublicKey, type KeyObject } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'

export interface AuthlibProvider {
  readonly issuer: string
  /** A browser follows the address, and the person says yes: where it is sent back to. */
  visit(location: string): Promise<URL>
  close(): Promise<void>
}

export interface AuthlibSetup {
  clientId: string
  clientSecret: string
  redirectUri: string
  method: 'client_secret_basic' | 'client_secret_post' | 'none'
  alg: string
  privateKey: KeyObject
  /** False: the id_token has the profile, and userinfo the subject alone. */
  isAddressInUserinfo: boolean
}

// Debian's own, whichever Python stands first on the path: its packages are there.
const python = '/usr/bin/python3'

export const hasAuthlib = isThere('import authlib, flask')

export async function startAuthlibProvider({ privateKey, ...setup }: AuthlibSetup): Promise<AuthlibProvider> {
  const named = { kid: 'authlib-1', alg: setup.alg, use: 'sig' }
  const key = { ...privateKey.export({ format: 'jwk' }), ...named }
  const publicKey = { ...createPublicKey(privateKey).export({ format: 'jwk' }), ...named }
  const script = join(import.meta.dirname, 'authlib-provider.py')
  const child = spawn(python, [script, JSON.stringify({ ...setup, key, publicKey })], { stdio: ['ignore', 'pipe', 'ignore'] })
  const [printed] = (await once(child.stdout, 'data')) as [Buffer]
  return {
    issuer: printed.toString().trim(),
    async visit(location) {
      const response = await fetch(location, { redirect: 'manual' })
      return new URL(response.headers.get('location') ?? `none:${response.status}`)
    },
    async close() {
      if (child.exitCode === null && child.kill()) await once(child, 'exit')
    },
  }
}

function isThere(code: string): boolean {
  try {
    execFileSync(python, ['-c', code], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
