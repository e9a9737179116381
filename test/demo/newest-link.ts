import { expect } from 'vitest'

/** The first two are pages of the app, the others the library's. */
const pages = { activate: 'activate', reset: 'reset', verify: 'accounts/auth/email-verify', change: 'accounts/auth/email-change' }

/** The newest link of its kind in the demo's outbox; waits for it, since mails travel after the answer. */
export async function newestLink(demo: { url: string }, kind: keyof typeof pages): Promise<{ url: string; token: string }> {
  const find = async () => {
    const outbox = await (await fetch(`${demo.url}/outbox`)).text()
    return new RegExp(`href="(${demo.url}/${pages[kind]}/([\\w-]{43}))"`).exec(outbox)
  }
  await expect.poll(find, { timeout: 5_000 }).not.toBeNull()
  const [, url = '', token = ''] = (await find()) ?? []
  return { url, token }
}
