import type { Fields } from './page-site'

/**
 * Returns the passkey that the page's script wrote into a form: the browser's response and the challenge token. If the JSON is malformed,
 * the credential is an empty object.
 */
export function passkeyOfForm({ credential = '', challenge_token: challenge = '' }: Fields): { credential: object; challenge: string } {
  return { credential: readObject(credential), challenge }
}

function readObject(text: string): object {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {}
  } catch {
    return {}
  }
}
