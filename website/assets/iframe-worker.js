// Browsers start no worker from a file. The search therefore runs in a hidden frame of the same page, behind
// the interface of a worker, when the site is opened without a server.
if (location.protocol === "file:") {
  window.IFrameWorker = window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.queue = []
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.append(frame)
      const inner = (this.inner = frame.contentWindow)
      const base = new URL(url, document.baseURI)
      const load = (address) =>
        new Promise((done, failed) => {
          const script = inner.document.createElement("script")
          script.src = new URL(address, base)
          script.onload = done
          script.onerror = failed
          inner.document.head.append(script)
        })
      inner.importScripts = (...addresses) => addresses.reduce((before, next) => before.then(() => load(next)), Promise.resolve())
      inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }))
      load(base).then(() => {
        this.ready = true
        this.queue.splice(0).forEach((data) => this.postMessage(data))
      }, () => this.dispatchEvent(new Event("error")))
    }
    postMessage(data) {
      if (this.ready) this.inner.dispatchEvent(new MessageEvent("message", { data }))
      else this.queue.push(data)
    }
    set onmessage(listener) { this.addEventListener("message", listener) }
    terminate() { this.inner.frameElement.remove() }
  }
}
