// Requests may travel as you like: through a proxy, signed, or to a service in the same process. Here by `fetch`, counted.
// prints: published through it
// prints: publish was called
import { createClient, PmqClientError, type Transport } from 'pmq-sdk'
import { prepare, url } from './support/prepare.ts'

await prepare({ topicName: 'carried', groupName: 'nobody' })
const calls = new Map<string, number>()

// #region transport
const transport: Transport = async (path, request, { timeoutMs, signal }) => {
  const name = path.slice(path.lastIndexOf('/') + 1)
  calls.set(name, (calls.get(name) ?? 0) + 1)
  const timeout = AbortSignal.timeout(timeoutMs)
  const response = await fetch(url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(request),
    signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
  }).catch(cause => {
    // The code says whether the request may have been carried out all the same, and so whether a retry is a repetition.
    throw new PmqClientError(timeout.aborted ? 'timeout' : 'connection_lost', `${name} was not answered`, { cause })
  })
  if (!response.ok) throw new PmqClientError('unavailable', `${name}: ${response.status}`, { status: response.status })
  return response.json()
}

const client = createClient({ transport })
// #endregion

await client.publish('carried', { body: 'a message' })
console.log('published through it')
if (calls.has('publish')) console.log('publish was called')
await client.close()
