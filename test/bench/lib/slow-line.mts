import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'

/** A way to a provider on which every request of a form takes its time. */
export interface SlowLine {
  readonly origin: string
  close(): void
}

export async function slowLine(provider: string, milliseconds: number): Promise<SlowLine> {
  const server = createServer(async (request, response) => {
    const [form] = await Promise.all([text(request), sleep(milliseconds)])
    const { authorization = '', 'content-type': type = '' } = request.headers
    const options = { method: 'POST', headers: { authorization, 'content-type': type }, body: form }
    const answer = await fetch(`${provider}${request.url}`, options)
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(await answer.text())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, // a TCP server's address is never a string
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}
