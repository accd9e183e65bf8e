import pickle


class MsgpackEncoder:
    def encode(self, obj):
        return [pickle.dumps(obj)]

    def encode_into(self, obj, buf):
        buf[:] = pickle.dumps(obj)
        return [buf]


class MsgpackDecoder:
    def decode(self, bufs):
        return pickle.loads(bufs[0])
