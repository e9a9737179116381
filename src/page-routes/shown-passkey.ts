import type { Fields } from './page-site'

/** What the page's script put into a form: the browser's answer, and the token of its options. What is no JSON is no passkey. */
export function shownPasskey({ credential = '', challenge_token: challenge = '' }: Fields): { credential: object; challenge: string } {
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
